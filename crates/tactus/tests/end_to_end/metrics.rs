//! Metrics of a run in progress: read by hand, and by a real Prometheus.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{json, measures_beside_others, nothing_is_left, output, skipped, stderr, stdout, tactus};

/// A run that serves metrics, and where.
struct Serving {
    child: Child,
    at: String,
}

impl Serving {
    fn start(out: &Path) -> Self {
        let mut command = tactus();
        command
            .args(["measure", "-D", "600s", "-i", "1000", "--max", "10s", "--metrics", ":0", "--out"])
            .arg(out);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = said.find_map(|line| Some(line.unwrap().strip_prefix("metrics: http://")?.to_owned()));
        std::thread::spawn(move || said.for_each(drop));
        let at = url.unwrap().strip_suffix("/metrics").unwrap().to_owned();
        assert!(at.starts_with("127.0.0.1:"), "loopback unless something else is said: {at}");
        Self { child, at }
    }

    /// Ends the run as Ctrl-C does.
    fn end(mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.child.wait().unwrap();
        nothing_is_left();
    }
}

/// The body of what is at a path.
fn get(at: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(at).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {at}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

/// The value of the first sample that begins so.
fn sample(text: &str, begins: &str) -> Option<f64> {
    text.lines().find(|line| line.starts_with(begins))?.rsplit_once(' ')?.1.parse().ok()
}

/// Waits until something is so.
fn until<T>(what: &str, mut is: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(found) = is() {
            return found;
        }
        assert!(Instant::now() < until, "{what}: never");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn counts_rise_from_scrape_to_scrape_and_are_those_of_the_bundle() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let run = Serving::start(&out);
    let count = |text: &str| sample(text, "tactus_latency_seconds_count{");
    let first = until("a first count", || count(&get(&run.at, "/metrics")?));
    let text = until("more", || get(&run.at, "/metrics").filter(|text| count(text) > Some(first)));
    assert!(text.contains("tactus_run_state{plan=\"measure\",tactus_run_state=\"running\"} 1"), "{text}");
    assert!(text.contains("tactus_scenario_state=\"measuring\"} 1"), "{text}");
    assert_eq!(sample(&text, "tactus_latency_limit_seconds{"), Some(10.0));
    assert!(sample(&text, "tactus_time_left_seconds{").unwrap() > 0.0);
    assert!(text.contains("tactus_findings{environment=\"host\",severity="), "{text}");
    let last = count(&text);
    run.end();
    let shown = json(&output(tactus().arg("report").arg(&out).arg("--json")));
    let cycles = shown["scenarios"][0]["series"][0]["cycles"].as_f64();
    assert!(cycles >= last, "{cycles:?} in the bundle, {last:?} at the last scrape");
    // The audit is the one that the bundle keeps.
    let exported = stdout(&output(tactus().arg("convert").arg(&out).args(["--to", "openmetrics"])));
    let findings = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("tactus_findings{")).map(str::to_owned).collect()
    };
    assert_eq!(findings(&text), findings(&exported));
}

#[test]
fn an_address_that_is_taken_or_none_is_refused_before_anything_starts() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    for (at, says) in [(at.as_str(), "--metrics"), ("nowhere:1", "in numbers"), (":x", "ADDRESS:PORT")] {
        let refused = output(tactus().args(["measure", "-D", "1", "--metrics", at]));
        assert_eq!(refused.status.code(), Some(2));
        assert!(
            stderr(&refused).contains(says) && stderr(&refused).contains("hint:"),
            "{}",
            stderr(&refused)
        );
    }
}

/// A process that ends with its test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_real_prometheus_scrapes_a_run_and_understands_rules_and_dashboard() {
    let Some(_turn) = measures_beside_others() else { return };
    let contrib = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/prometheus"));
    let promtool =
        |arguments: &[&str]| Command::new("promtool").args(arguments).current_dir(contrib).output();
    let Ok(checked) = promtool(&["check", "rules", "tactus.rules.yml"]) else {
        return skipped("there is no promtool (package prometheus)");
    };
    assert!(checked.status.success(), "{}", stderr(&checked));
    let tested = promtool(&["test", "rules", "tactus.rules.test.yml"]).unwrap();
    assert!(tested.status.success(), "{}{}", stdout(&tested), stderr(&tested));
    let dir = tempfile::tempdir().unwrap();
    let run = Serving::start(&dir.path().join("bundle"));
    // A free port: no other test asks for one at the same moment.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let config = dir.path().join("prometheus.yml");
    let rules = contrib.canonicalize().unwrap().join("tactus.rules.yml");
    let text = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [\"{}\"]\nscrape_configs:\n- job_name: tactus\n  \
         static_configs: [{{targets: [\"{}\"]}}]\n",
        rules.display(),
        run.at
    );
    fs::write(&config, text).unwrap();
    let prometheus = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()))
        .arg(format!("--web.listen-address={free}"))
        .stdout(Stdio::null())
        .stderr(fs::File::create(dir.path().join("log")).unwrap())
        .spawn()
        .unwrap();
    let _prometheus = Killed(prometheus);
    let ask = |query: &str| -> Option<Value> {
        let query: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let answer: Value =
            serde_json::from_str(&get(&free, &format!("/api/v1/query?query={query}"))?).ok()?;
        answer["data"]["result"].get(0).cloned()
    };
    let value = |result: &Value| result["value"][1].as_str().and_then(|text| text.parse::<f64>().ok());
    until("the target is up", || value(&ask("up")?).filter(|up| *up > 0.0));
    let cycles = until("cycles", || value(&ask("tactus_cycles_total")?).filter(|cycles| *cycles > 0.0));
    until("more cycles", || value(&ask("tactus_cycles_total")?).filter(|more| *more > cycles));
    let query = "histogram_quantile(0.99, sum by(le) (rate(tactus_latency_seconds_bucket[30s])))";
    let quantile = until("a quantile", || value(&ask(query)?).filter(|quantile| quantile.is_finite()));
    assert!(quantile > 0.0);
    let info = until("what is measured", || ask("tactus_scenario_info"));
    assert_eq!(info["metric"]["environment"], "host", "{info:#}");
    let state = until("its state", || ask("tactus_scenario_state{tactus_scenario_state=\"measuring\"} == 1"));
    assert_eq!(state["metric"]["number"], "0");
    let rules = until("the rules", || {
        let answer: Value = serde_json::from_str(&get(&free, "/api/v1/rules")?).ok()?;
        let rules = answer["data"]["groups"][0]["rules"].as_array()?.clone();
        rules.iter().all(|rule| rule["health"] == "ok").then_some(rules)
    });
    assert_eq!(rules.len(), 6, "{rules:#?}");
    // Every expression of the dashboard is one that this Prometheus understands.
    let board = fs::read_to_string(contrib.join("../grafana/tactus.json")).unwrap();
    let board: Value = serde_json::from_str(&board).unwrap();
    let panels = board["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    assert!(expressions.len() >= 8);
    for expression in expressions {
        let query = expression.replace("$instance", ".*").replace("$environment", ".*");
        let query = query.replace("$__rate_interval", "1m");
        let coded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let answer = until("an answer", || get(&free, &format!("/api/v1/query?query={coded}")));
        assert!(answer.starts_with("{\"status\":\"success\""), "{query}: {answer}");
    }
    run.end();
}
