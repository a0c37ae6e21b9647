//! Parses the responses of Prometheus.

use serde::Deserialize;
use serde_json::Value;

use super::Problem;

/// The longest error text of a server that is passed on.
const MAX_MESSAGE_LENGTH: usize = 200;

#[derive(Deserialize)]
struct QueryResponse {
    status: String,
    #[serde(default)]
    data: Option<QueryData>,
    #[serde(default, rename = "errorType")]
    error_type: Option<String>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueryData {
    result_type: String,
    result: Value,
}

#[derive(Deserialize)]
struct Sample {
    value: (Value, String),
}

/// The single value in the body of a response with this status.
pub fn parse(status: u16, body: &[u8]) -> Result<f64, Problem> {
    let response: Result<QueryResponse, _> = serde_json::from_slice(body);
    if status != 200 {
        let message = response.ok().and_then(error_message);
        return Err(Problem::Status { status, message });
    }
    // The parser's error is not passed on: it may quote a body that is not of a Prometheus.
    let response = response.map_err(|_| unreadable("it is not the JSON of a query"))?;
    if response.status != "success" {
        let message = error_message(response);
        return Err(Problem::Status { status, message });
    }
    let data = response.data.ok_or_else(|| unreadable("it has no data"))?;
    if data.result_type != "vector" {
        return Err(Problem::WrongType(known_type(&data.result_type)));
    }
    let samples: Vec<Sample> = serde_json::from_value(data.result)
        .map_err(|_| unreadable("its result is not an instant vector"))?;
    match &samples[..] {
        [] => Err(Problem::NoValue),
        [sample] => number(&sample.value.1),
        several => Err(Problem::ManyValues(several.len())),
    }
}

fn number(text: &str) -> Result<f64, Problem> {
    let number: f64 = text
        .parse()
        .map_err(|_| unreadable("its value is not a number"))?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err(Problem::NotFinite(number.to_string()))
    }
}

/// The error in a response of a Prometheus. Bodies of other servers are not passed on: a user who may
/// write a trigger could read them that way.
fn error_message(response: QueryResponse) -> Option<String> {
    let kind = response.error_type?;
    let error = response.error.unwrap_or_default();
    let message: String = format!("{kind}: {error}")
        .chars()
        .take(MAX_MESSAGE_LENGTH)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    Some(message)
}

fn known_type(kind: &str) -> String {
    let known = ["scalar", "matrix", "string"].contains(&kind);
    if known {
        kind
    } else {
        "result of another type"
    }
    .to_owned()
}

fn unreadable(why: &str) -> Problem {
    Problem::Unreadable(why.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn vector(result: &Value) -> String {
        json!({"status": "success", "data": {"resultType": "vector", "result": result}}).to_string()
    }

    fn one(value: &str) -> Result<f64, Problem> {
        let body = vector(&json!([{"metric": {}, "value": [1_767_225_600.123, value]}]));
        parse(200, body.as_bytes())
    }

    #[test]
    fn a_single_value_is_parsed() {
        assert_eq!(one("0.5"), Ok(0.5));
        assert_eq!(one("0"), Ok(0.0));
        assert_eq!(one("1e-7"), Ok(1e-7));
        for (text, shown) in [("NaN", "NaN"), ("+Inf", "inf"), ("-Inf", "-inf")] {
            assert_eq!(one(text), Err(Problem::NotFinite(shown.into())));
        }
        assert_eq!(one("many").unwrap_err().reason(), "PrometheusFailed");
    }

    #[test]
    fn empty_and_several_values_are_refused() {
        let sample = json!({"metric": {"pod": "a"}, "value": [1, "0"]});
        assert_eq!(
            parse(200, vector(&json!([])).as_bytes()),
            Err(Problem::NoValue)
        );
        let two = vector(&json!([sample, sample]));
        assert_eq!(parse(200, two.as_bytes()), Err(Problem::ManyValues(2)));
    }

    #[test]
    fn other_types_are_refused() {
        for (kind, result, shown) in [
            ("scalar", json!([1, "0"]), "scalar"),
            ("matrix", json!([]), "matrix"),
            ("hush", json!([]), "result of another type"),
        ] {
            let body = json!({"status": "success", "data": {"resultType": kind, "result": result}});
            let answer = parse(200, body.to_string().as_bytes());
            assert_eq!(answer, Err(Problem::WrongType(shown.into())));
        }
    }

    #[test]
    fn only_errors_of_a_prometheus_are_passed_on() {
        let refusal = r#"{"status":"error","errorType":"bad_data","error":"parse error:\n oh"}"#;
        let message = Some("bad_data: parse error:  oh".to_owned());
        for status in [400, 200] {
            let message = message.clone();
            assert_eq!(
                parse(status, refusal.as_bytes()),
                Err(Problem::Status { status, message })
            );
        }
        for body in ["hush", r#"{"secret":"hush"}"#, r#"{"status":"hush"}"#, ""] {
            let problem = parse(500, body.as_bytes()).unwrap_err();
            assert_eq!(
                problem,
                Problem::Status {
                    status: 500,
                    message: None
                }
            );
            let problem = parse(200, body.as_bytes()).unwrap_err();
            assert!(!problem.to_string().contains("hush"), "{problem}");
        }
    }

    proptest! {
        #[test]
        fn no_response_panics(status in 100_u16..600, body in prop::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(parse(status, &body).is_err());
        }
    }
}
