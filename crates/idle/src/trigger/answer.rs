//! What a Prometheus answers.

use serde::Deserialize;
use serde_json::Value;

use super::Problem;

/// More of what a server says is not passed on.
const LONGEST_SAYING: usize = 200;

#[derive(Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    data: Option<Data>,
    #[serde(default, rename = "errorType")]
    error_type: Option<String>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: Value,
}

#[derive(Deserialize)]
struct Sample {
    value: (Value, String),
}

/// The one value in `body`, which came with `status`.
pub fn read(status: u16, body: &[u8]) -> Result<f64, Problem> {
    let answer: Result<Answer, _> = serde_json::from_slice(body);
    if status != 200 {
        let said = answer.ok().and_then(said);
        return Err(Problem::Status { status, said });
    }
    // A message of the parser may quote what it read, and that is not always from a Prometheus.
    let answer = answer.map_err(|_| unreadable("it is not the JSON of a query"))?;
    if answer.status != "success" {
        let said = said(answer);
        return Err(Problem::Status { status, said });
    }
    let data = answer.data.ok_or_else(|| unreadable("it has no data"))?;
    if data.result_type != "vector" {
        return Err(Problem::Kind(known(&data.result_type)));
    }
    let samples: Vec<Sample> = serde_json::from_value(data.result)
        .map_err(|_| unreadable("its result is no instant vector"))?;
    match &samples[..] {
        [] => Err(Problem::Nothing),
        [sample] => number(&sample.value.1),
        several => Err(Problem::Several(several.len())),
    }
}

fn number(text: &str) -> Result<f64, Problem> {
    let number: f64 = text
        .parse()
        .map_err(|_| unreadable("its value is no number"))?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err(Problem::NotFinite(number.to_string()))
    }
}

/// What a Prometheus says of its refusal. Whatever else answers is not passed on: who may write a
/// trigger could read it.
fn said(answer: Answer) -> Option<String> {
    let kind = answer.error_type?;
    let error = answer.error.unwrap_or_default();
    let said: String = format!("{kind}: {error}")
        .chars()
        .take(LONGEST_SAYING)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    Some(said)
}

fn known(kind: &str) -> String {
    let known = ["scalar", "matrix", "string"].contains(&kind);
    if known { kind } else { "thing of another type" }.to_owned()
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
        read(200, body.as_bytes())
    }

    #[test]
    fn one_value_is_read() {
        assert_eq!(one("0.5"), Ok(0.5));
        assert_eq!(one("0"), Ok(0.0));
        assert_eq!(one("1e-7"), Ok(1e-7));
        for (text, shown) in [("NaN", "NaN"), ("+Inf", "inf"), ("-Inf", "-inf")] {
            assert_eq!(one(text), Err(Problem::NotFinite(shown.into())));
        }
        assert_eq!(one("many").unwrap_err().reason(), "PrometheusFailed");
    }

    #[test]
    fn none_and_several_are_not_one() {
        let sample = json!({"metric": {"pod": "a"}, "value": [1, "0"]});
        assert_eq!(
            read(200, vector(&json!([])).as_bytes()),
            Err(Problem::Nothing)
        );
        let two = vector(&json!([sample, sample]));
        assert_eq!(read(200, two.as_bytes()), Err(Problem::Several(2)));
    }

    #[test]
    fn other_types_are_refused() {
        for (kind, result, shown) in [
            ("scalar", json!([1, "0"]), "scalar"),
            ("matrix", json!([]), "matrix"),
            ("hush", json!([]), "thing of another type"),
        ] {
            let body = json!({"status": "success", "data": {"resultType": kind, "result": result}});
            let answer = read(200, body.to_string().as_bytes());
            assert_eq!(answer, Err(Problem::Kind(shown.into())));
        }
    }

    #[test]
    fn a_prometheus_says_why_it_refuses_and_nobody_else_does() {
        let refusal = r#"{"status":"error","errorType":"bad_data","error":"parse error:\n oh"}"#;
        let said = Some("bad_data: parse error:  oh".to_owned());
        for status in [400, 200] {
            let said = said.clone();
            assert_eq!(
                read(status, refusal.as_bytes()),
                Err(Problem::Status { status, said })
            );
        }
        for body in ["hush", r#"{"secret":"hush"}"#, r#"{"status":"hush"}"#, ""] {
            let problem = read(500, body.as_bytes()).unwrap_err();
            assert_eq!(
                problem,
                Problem::Status {
                    status: 500,
                    said: None
                }
            );
            let problem = read(200, body.as_bytes()).unwrap_err();
            assert!(!problem.to_string().contains("hush"), "{problem}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_does_harm(status in 100_u16..600, body in prop::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(read(status, &body).is_err());
        }
    }
}
