"use strict";
// The token has done its work: a cookie has it now, and it need not stand in the history.
if (new URLSearchParams(location.search).has("token")) {
  const rest = new URLSearchParams(location.search);
  rest.delete("token");
  history.replaceState(null, "", location.pathname + (rest.size ? "?" + rest : "") + location.hash);
}
const main = document.getElementById("main"), line = document.getElementById("line");
// What has changed is put in its place, and nothing else: who reads, or stands on a link, stays there.
const merge = (old, now) => {
  const before = [...old.childNodes], after = [...now.childNodes];
  after.forEach((node, n) => {
    const own = before[n];
    if (!own) old.append(node);
    else if (own.nodeName !== node.nodeName) own.replaceWith(node);
    else if (node.nodeType !== Node.ELEMENT_NODE) { if (own.data !== node.data) own.data = node.data; }
    else {
      for (const { name } of [...own.attributes]) if (!node.hasAttribute(name)) own.removeAttribute(name);
      for (const { name, value } of node.attributes) if (own.getAttribute(name) !== value) own.setAttribute(name, value);
      merge(own, node);
    }
  });
  before.slice(after.length).forEach((node) => node.remove());
};
let source = null;
const say = (text, lost) => {
  if (line.textContent !== text) line.textContent = text;
  line.className = lost ? "lost" : "";
};
const take = (event) => {
  // What comes is made by the template that made this page: its words are escaped, and no script in it is run.
  const part = new DOMParser().parseFromString(event.data, "text/html").body;
  merge(main, part);
};
const leave = () => { if (source) source.close(); source = null; };
const follow = () => {
  leave();
  source = new EventSource(main.dataset.events);
  source.addEventListener("open", () => say("followed as it goes on", false));
  source.addEventListener("state", take);
  source.addEventListener("ended", (event) => { take(event); leave(); say("the run has ended", false); delete main.dataset.events; });
  source.addEventListener("error", () => say(source && source.readyState === EventSource.CLOSED
    ? "cannot be followed: reload this page" : "the connection is lost: trying again", true));
};
if (main.dataset.events) {
  follow();
  // A browser has few connections to one place: a page that nobody sees takes none.
  document.addEventListener("visibilitychange", () => {
    if (!main.dataset.events) return;
    if (document.hidden) { leave(); say("not followed while nobody looks", false); } else follow();
  });
}
