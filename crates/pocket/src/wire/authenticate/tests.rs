use super::*;
use http::HeaderValue;

#[test]
fn the_second_word_after_bearer_is_the_token() {
    for (header, token) in [
        ("Bearer t", Some("t")),
        ("Bearer \u{f6}", Some("\u{f6}")),
        ("bearer t", Some("t")),
        (" BEARER t ", Some("t")),
        ("Bearer t x", Some("t")),
        ("Bearer  t", None),
        ("Bearer ", None),
        ("Bearer", None),
        ("Basic t", None),
        ("t", None),
        ("", None),
    ] {
        let header = HeaderValue::from_bytes(header.as_bytes()).unwrap();
        let headers = HeaderMap::from_iter([(AUTHORIZATION, header.clone())]);
        assert_eq!(bearer(&headers), token.map(str::as_bytes), "{header:?}");
    }
    assert_eq!(bearer(&HeaderMap::new()), None);
}
