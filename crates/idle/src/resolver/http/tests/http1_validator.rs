use http::StatusCode;
use proptest::prelude::*;

use crate::resolver::http::http1_validator::{Http1Validator, MAX_HEAD_SIZE};

fn verdict(bytes: &[u8]) -> Result<(), StatusCode> {
    let validated = Http1Validator::default().validate(bytes);
    validated.map_err(|bad| bad.status)
}

#[test]
fn plain_requests_pass_one_after_the_other() {
    for fine in [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\na\nbGET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=y\r\na\nb\r\n0\r\nT: v\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    ] {
        assert_eq!(verdict(fine.as_bytes()), Ok(()), "{fine:?}");
    }
}

#[test]
fn ambiguous_requests_are_rejected() {
    for refused in [
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nContent-Length: 3, 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nContent-Length: +3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nContent-Length: \r\n\r\nabc",
        "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\r\nabc\r\n0\r\n\r\n",
    ] {
        let verdict = verdict(refused.as_bytes());
        assert_eq!(verdict, Err(StatusCode::BAD_REQUEST), "{refused:?}");
    }
}

#[test]
fn an_endless_head_is_rejected() {
    let long = format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(MAX_HEAD_SIZE));
    let too_large = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    assert_eq!(verdict(long.as_bytes()), Err(too_large));
    let many = format!("GET / HTTP/1.1\r\n{}", "A: b\r\n".repeat(MAX_HEAD_SIZE / 6));
    assert_eq!(verdict(many.as_bytes()), Err(too_large));
    let many = "POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx".repeat(MAX_HEAD_SIZE / 10);
    assert_eq!(verdict(many.as_bytes()), Ok(()));
}

proptest! {
    #[test]
    fn the_result_does_not_depend_on_how_bytes_are_split(
        text in "(GET|POST) / HTTP/1\\.[01]\r\n(Content-Length: [0-3]\r\n|Transfer-Encoding: chunked\r\n|A:b\r?\n){0,3}\r\n(2\r\nab\r\n|0\r\n\r\n|ab|\r?\n){0,4}",
        cuts in proptest::collection::vec(0_usize..60, 0..6),
    ) {
        let bytes = text.as_bytes();
        let whole = Http1Validator::default().validate(bytes);
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        cuts.push(bytes.len());
        let mut validator = Http1Validator::default();
        let mut from = 0;
        let mut parts = Ok(());
        for cut in cuts {
            parts = parts.and_then(|()| validator.validate(&bytes[from..cut]));
            from = cut;
        }
        prop_assert_eq!(whole, parts);
    }
}
