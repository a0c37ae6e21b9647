use super::*;

#[test]
fn the_second_word_after_bearer_is_the_token() {
    for (header, token) in [
        ("Bearer t", Some("t")),
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
        let headers = [(AUTHORIZATION, header.parse().unwrap())];
        let headers = headers.into_iter().collect();
        assert_eq!(bearer(&headers), token, "{header:?}");
    }
    assert_eq!(bearer(&HeaderMap::new()), None);
}
