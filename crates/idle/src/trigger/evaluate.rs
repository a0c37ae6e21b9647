//! From the measurements of triggers to a verdict.

use std::time::Duration;

use jiff::Timestamp;

use super::{Problem, Verdict};
use crate::reason::Reason;

fn unknown(problem: &Problem) -> Verdict {
    Verdict::Unknown(Reason::new(problem.reason(), problem.to_string()))
}

fn busy(message: impl Into<String>) -> Verdict {
    Verdict::Busy(Reason::new("Busy", message))
}

fn idle(message: impl Into<String>) -> Verdict {
    Verdict::Idle(Reason::new("Idle", message))
}

/// The result of one trigger.
#[derive(Debug, Clone, PartialEq)]
pub enum Measurement {
    /// The values of two queries to Prometheus.
    Prometheus {
        /// 1 if Prometheus was up during the whole cooldown.
        health: Result<f64, Problem>,
        /// The value of the trigger's query.
        value: Result<f64, Problem>,
        /// The service is idle while the value is below this.
        threshold: f64,
    },
    /// The requests that all resolvers received together.
    Requests(Result<RecentRequests, Problem>),
    /// No query could be made of the trigger.
    NotQueried(Problem),
}

/// The recent requests for a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecentRequests {
    /// The number of requests that wait for a pod or are in progress.
    pub held: u64,
    /// The time of the last request; none if resolvers know of no request.
    pub last: Option<Timestamp>,
}

/// The value that keeps a service awake in KubeElasti: a query returns it with `or vector(-1)`.
const KEEP_AWAKE: f64 = -1.0;

/// The verdict of all triggers of a service. One busy trigger is enough to be busy; to be idle, all must
/// be idle.
pub fn evaluate(measurements: &[Measurement], now: Timestamp, cooldown: Duration) -> Verdict {
    let (mut idle, mut last_request_at) = (Vec::new(), None);
    let mut first_unknown = None;
    for measurement in measurements {
        match evaluate_one(measurement, now, cooldown) {
            Verdict::Idle(reason) => {
                last_request_at = last_request_at.max(reason.last_request_at);
                idle.push(reason.message);
            }
            busy @ Verdict::Busy(_) => return busy,
            unknown @ Verdict::Unknown(_) => first_unknown = first_unknown.or(Some(unknown)),
        }
    }
    if let Some(unknown) = first_unknown {
        return unknown;
    }
    if idle.is_empty() {
        let message = "spec.triggers is empty, so nothing shows that the service is idle";
        return Verdict::Unknown(Reason::new("NoTriggers", message));
    }
    Verdict::Idle(Reason {
        last_request_at,
        ..Reason::new("Idle", idle.join("; "))
    })
}

fn evaluate_one(measurement: &Measurement, now: Timestamp, cooldown: Duration) -> Verdict {
    match measurement {
        Measurement::NotQueried(problem) | Measurement::Requests(Err(problem)) => unknown(problem),
        Measurement::Requests(Ok(requests)) => evaluate_requests(*requests, now, cooldown),
        Measurement::Prometheus {
            health,
            value,
            threshold,
        } => match (health, value) {
            (Ok(1.0), Ok(value)) => compare(*value, *threshold),
            (Ok(1.0), Err(problem)) | (Err(problem), _) => unknown(problem),
            (Ok(_), _) => unknown(&Problem::Unhealthy),
        },
    }
}

fn compare(value: f64, threshold: f64) -> Verdict {
    if !value.is_finite() || !threshold.is_finite() {
        return unknown(&Problem::NotFinite(value.to_string()));
    }
    if value.to_bits() == KEEP_AWAKE.to_bits() {
        return busy("the query's value is -1, which keeps the service awake");
    }
    // Counts are never negative, so a threshold of zero means "none".
    let is_idle = value < threshold || (threshold == 0.0 && value <= 0.0);
    if is_idle {
        let than = if threshold == 0.0 {
            "not above"
        } else {
            "below"
        };
        idle(format!(
            "the query's value {value} is {than} the threshold {threshold}"
        ))
    } else {
        busy(format!(
            "the query's value {value} reaches the threshold {threshold}"
        ))
    }
}

fn evaluate_requests(requests: RecentRequests, now: Timestamp, cooldown: Duration) -> Verdict {
    if requests.held > 0 {
        return busy(format!("{} requests are in progress", requests.held));
    }
    let Some(last) = requests.last else {
        return idle("resolvers know of no request");
    };
    let idle_from = last.checked_add(cooldown).unwrap_or(Timestamp::MAX);
    let reason = |name| {
        let message = format!("resolvers received the last request at {last}");
        Reason::new(name, message).with_last_request_at(last)
    };
    if now < idle_from {
        Verdict::Busy(reason("Busy"))
    } else {
        Verdict::Idle(reason("Idle"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COOLDOWN: Duration = Duration::from_mins(15);

    fn now() -> Timestamp {
        "2026-01-01T12:00:00Z".parse().unwrap()
    }

    fn measured(value: Result<f64, Problem>, threshold: f64) -> Measurement {
        Measurement::Prometheus {
            health: Ok(1.0),
            value,
            threshold,
        }
    }

    fn word(answers: &[Measurement]) -> &'static str {
        evaluate(answers, now(), COOLDOWN).reason().name
    }

    #[test]
    fn values_are_compared_with_the_threshold() {
        for (value, threshold, says) in [
            (0.4, 0.5, "Idle"),
            (0.5, 0.5, "Busy"),
            (0.6, 0.5, "Busy"),
            (0.0, 0.0, "Idle"),
            (-0.0, 0.0, "Idle"),
            (0.000_1, 0.0, "Busy"),
            (-0.5, 0.0, "Idle"),
            (0.0, 0.01, "Idle"),
            (-2.0, -1.5, "Idle"),
            (-1.0, 0.5, "Busy"),
            (-1.0, 0.0, "Busy"),
            (f64::NAN, 0.5, "NotANumber"),
            (f64::INFINITY, 0.5, "NotANumber"),
            (f64::NEG_INFINITY, 0.5, "NotANumber"),
        ] {
            assert_eq!(
                word(&[measured(Ok(value), threshold)]),
                says,
                "{value} {threshold}"
            );
        }
    }

    #[test]
    fn an_unknown_measurement_never_counts_as_idle() {
        for problem in [
            Problem::NoValue,
            Problem::ManyValues(2),
            Problem::Timeout(COOLDOWN),
            Problem::Unreachable("refused".into()),
            Problem::NoAddress,
        ] {
            let reason = problem.reason();
            assert_eq!(word(&[measured(Err(problem.clone()), 0.5)]), reason);
            assert_eq!(word(&[Measurement::NotQueried(problem.clone())]), reason);
            let idle = measured(Ok(0.0), 0.5);
            assert_eq!(word(&[idle, measured(Err(problem), 0.5)]), reason);
        }
        assert_eq!(word(&[]), "NoTriggers");
    }

    #[test]
    fn a_prometheus_that_was_down_gives_no_verdict() {
        for (health, says) in [
            (Ok(1.0), "Idle"),
            (Ok(0.0), "PrometheusWasDown"),
            (Ok(0.99), "PrometheusWasDown"),
            (Ok(f64::NAN), "PrometheusWasDown"),
            (Err(Problem::NoValue), "NoValue"),
        ] {
            let measured = Measurement::Prometheus {
                health,
                value: Ok(0.0),
                threshold: 0.5,
            };
            assert_eq!(word(&[measured]), says);
        }
    }

    #[test]
    fn one_busy_trigger_is_enough() {
        let busy = measured(Ok(1.0), 0.5);
        let unknown = measured(Err(Problem::NoValue), 0.5);
        assert_eq!(word(&[unknown, measured(Ok(0.0), 0.5), busy]), "Busy");
    }

    #[test]
    fn requests_counted_by_resolvers_need_no_prometheus() {
        let quiet = |held, last: Option<&str>| {
            let last = last.map(|last| last.parse().unwrap());
            word(&[Measurement::Requests(Ok(RecentRequests { held, last }))])
        };
        assert_eq!(quiet(0, None), "Idle");
        assert_eq!(quiet(1, None), "Busy");
        assert_eq!(quiet(1, Some("2026-01-01T00:00:00Z")), "Busy");
        assert_eq!(quiet(0, Some("2026-01-01T11:45:00Z")), "Idle");
        assert_eq!(quiet(0, Some("2026-01-01T11:45:01Z")), "Busy");
        assert_eq!(quiet(0, Some("2026-01-01T13:00:00Z")), "Busy");
        let silent = Err(Problem::Resolver("refused".into()));
        assert_eq!(word(&[Measurement::Requests(silent)]), "ResolverSilent");
    }

    fn measurements() -> impl Strategy<Value = Measurement> {
        let value = prop_oneof![
            any::<f64>().prop_map(Ok),
            Just(Err(Problem::NoValue)),
            Just(Err(Problem::Unhealthy)),
        ];
        let health = prop_oneof![Just(Ok(1.0)), Just(Ok(0.0)), Just(Err(Problem::NoValue))];
        (health, value, -1.0..2.0).prop_map(|(health, value, threshold)| Measurement::Prometheus {
            health,
            value,
            threshold,
        })
    }

    proptest! {
        /// Only evidence from every trigger makes a service idle, and their order does not matter.
        #[test]
        fn it_sleeps_on_evidence_alone(mut answers in prop::collection::vec(measurements(), 0..5)) {
            let says = |answers: &[Measurement]| std::mem::discriminant(&evaluate(answers, now(), COOLDOWN));
            let idle = matches!(evaluate(&answers, now(), COOLDOWN), Verdict::Idle(_));
            let each = answers.iter().all(|one| {
                matches!(evaluate(std::slice::from_ref(one), now(), COOLDOWN), Verdict::Idle(_))
            });
            prop_assert_eq!(idle, each && !answers.is_empty());
            let before = says(&answers);
            answers.reverse();
            prop_assert_eq!(before, says(&answers));
        }
    }
}
