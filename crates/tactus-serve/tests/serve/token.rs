//! Only a client with the token is let in.

use tactus_serve::Token;

use crate::common::{get, put, serve};

#[test]
fn without_the_token_nothing_is_told() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "prove", "own-bundle");
    let token = Token::random().unwrap();
    let right = token.text().to_owned();
    let at = serve(dir.path(), Some(token));
    let port = at.port();
    let other = right.replace(|_: char| true, "0");
    for path in
        ["/", "/events", "/bundle/own-bundle", "/bundle/own-bundle/events", "/favicon.ico", "/nothing"]
    {
        for (query, headers) in [
            (String::new(), String::new()),
            ("?token=".into(), String::new()),
            (format!("?token={other}"), String::new()),
            (format!("?token={}", &right[1..]), String::new()),
            (format!("?token={right}0"), String::new()),
            (format!("?nottoken={right}"), String::new()),
            (String::new(), format!("Cookie: tactus-{port}={other}\r\n")),
            (String::new(), format!("Cookie: tactus-1={right}\r\n")),
            (String::new(), format!("Authorization: Basic {right}\r\n")),
            (String::new(), format!("Referer: http://{at}/?token={right}\r\n")),
        ] {
            let got = get(at, &format!("{path}{query}"), &headers);
            assert_eq!(got.code, 401, "{path}{query} {headers}");
            assert!(!got.body.contains("own-bundle") && !got.head.contains("Set-Cookie"), "{got:?}");
        }
    }
}

#[test]
fn the_token_opens_once_by_the_address_and_then_by_a_cookie_that_no_script_and_no_other_site_has() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "prove", "own-bundle");
    let token = Token::random().unwrap();
    let right = token.text().to_owned();
    let at = serve(dir.path(), Some(token));
    let first = get(at, &format!("/?token={right}"), "");
    assert!(first.code == 200 && first.body.contains("own-bundle"), "{}", first.head);
    assert!(!first.body.contains(&right), "no page has it");
    let cookie = first.head.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).unwrap();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(first.head.contains("Referrer-Policy: no-referrer"));
    let own = format!("Cookie: other=1; {}\r\n", cookie.split(';').next().unwrap());
    let second = get(at, "/bundle/own-bundle", &own);
    assert!(second.code == 200 && !second.head.contains("Set-Cookie"), "{}", second.head);
    assert_eq!(get(at, "/", &format!("Authorization: Bearer {right}\r\n")).code, 200, "for scripts");
}
