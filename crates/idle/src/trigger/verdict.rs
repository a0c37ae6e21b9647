//! From what was answered to whether anybody asks.

use std::time::Duration;

use jiff::Timestamp;

use super::Problem;
pub use crate::service::verdict::{Because, Verdict};

fn unknown(problem: &Problem) -> Verdict {
    Verdict::Unknown(Because::new(problem.reason(), problem.to_string()))
}

fn busy(because: impl Into<String>) -> Verdict {
    Verdict::Busy(Because::new("Busy", because))
}

fn idle(because: impl Into<String>) -> Verdict {
    Verdict::Idle(Because::new("Idle", because))
}

/// What one trigger was answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Measurement {
    /// By a Prometheus.
    Prometheus {
        /// 1 if it was up during all of the cooldown.
        health: Result<f64, Problem>,
        /// What the query came to.
        value: Result<f64, Problem>,
        /// Nobody asks while the value is below.
        threshold: f64,
    },
    /// By the resolvers, all of them.
    Requests(Result<Quiet, Problem>),
    /// It could not even be asked.
    Unasked(Problem),
}

/// How quiet it is for a service, as its resolvers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quiet {
    /// How many wait for a pod or are being answered.
    pub held: u64,
    /// When it was last asked for; never if absent.
    pub last: Option<Timestamp>,
}

/// What the original took as "keep it": a query says so with `or vector(-1)`.
const KEEP: f64 = -1.0;

/// Whether anybody asks for a service whose triggers were answered so. One who asks is enough; that
/// nobody does, all must say.
pub fn verdict(answers: &[Measurement], now: Timestamp, cooldown: Duration) -> Verdict {
    let (mut quiet, mut asked) = (Vec::new(), None);
    let mut unsaid = None;
    for answer in answers {
        match judged(answer, now, cooldown) {
            Verdict::Idle(because) => {
                asked = asked.max(because.asked);
                quiet.push(because.sentence);
            }
            busy @ Verdict::Busy(_) => return busy,
            other @ Verdict::Unknown(_) => unsaid = unsaid.or(Some(other)),
        }
    }
    if let Some(unsaid) = unsaid {
        return unsaid;
    }
    if quiet.is_empty() {
        let because = "the service has no triggers, so nothing says that nobody asks for it";
        return Verdict::Unknown(Because::new("NoTriggers", because));
    }
    let because = Because::new("Idle", quiet.join("; "));
    Verdict::Idle(Because { asked, ..because })
}

fn judged(answer: &Measurement, now: Timestamp, cooldown: Duration) -> Verdict {
    match answer {
        Measurement::Unasked(problem) | Measurement::Requests(Err(problem)) => unknown(problem),
        Measurement::Requests(Ok(quiet)) => counted(*quiet, now, cooldown),
        Measurement::Prometheus {
            health,
            value,
            threshold,
        } => match (health, value) {
            (Ok(1.0), Ok(value)) => compared(*value, *threshold),
            (Ok(1.0), Err(problem)) | (Err(problem), _) => unknown(problem),
            (Ok(_), _) => unknown(&Problem::Unhealthy),
        },
    }
}

fn compared(value: f64, threshold: f64) -> Verdict {
    if !value.is_finite() || !threshold.is_finite() {
        return unknown(&Problem::NotFinite(value.to_string()));
    }
    if value.to_bits() == KEEP.to_bits() {
        return busy("the query's value is -1, which asks to keep the service");
    }
    // Nothing that is counted is below zero, so a threshold of zero means "none".
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

fn counted(quiet: Quiet, now: Timestamp, cooldown: Duration) -> Verdict {
    if quiet.held > 0 {
        return busy(format!("{} requests are under way", quiet.held));
    }
    let Some(last) = quiet.last else {
        return idle("resolvers know of no request");
    };
    let quiet_since = last.checked_add(cooldown).unwrap_or(Timestamp::MAX);
    let because = |reason| {
        let sentence = format!("the last request that resolvers saw was at {last}");
        Because::new(reason, sentence).last_asked(last)
    };
    if now < quiet_since {
        Verdict::Busy(because("Busy"))
    } else {
        Verdict::Idle(because("Idle"))
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
        verdict(answers, now(), COOLDOWN).because().reason
    }

    #[test]
    fn values_are_held_against_the_threshold() {
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
    fn what_is_not_known_never_means_that_nobody_asks() {
        for problem in [
            Problem::Nothing,
            Problem::Several(2),
            Problem::Late(COOLDOWN),
            Problem::Unreachable("refused".into()),
            Problem::NoAddress,
        ] {
            let reason = problem.reason();
            assert_eq!(word(&[measured(Err(problem.clone()), 0.5)]), reason);
            assert_eq!(word(&[Measurement::Unasked(problem.clone())]), reason);
            let idle = measured(Ok(0.0), 0.5);
            assert_eq!(word(&[idle, measured(Err(problem), 0.5)]), reason);
        }
        assert_eq!(word(&[]), "NoTriggers");
    }

    #[test]
    fn a_prometheus_that_was_down_knows_nothing() {
        for (health, says) in [
            (Ok(1.0), "Idle"),
            (Ok(0.0), "PrometheusWasDown"),
            (Ok(0.99), "PrometheusWasDown"),
            (Ok(f64::NAN), "PrometheusWasDown"),
            (Err(Problem::Nothing), "NoValue"),
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
    fn one_who_asks_is_enough() {
        let busy = measured(Ok(1.0), 0.5);
        let unknown = measured(Err(Problem::Nothing), 0.5);
        assert_eq!(word(&[unknown, measured(Ok(0.0), 0.5), busy]), "Busy");
    }

    #[test]
    fn resolvers_count_for_those_who_have_no_prometheus() {
        let quiet = |held, last: Option<&str>| {
            let last = last.map(|last| last.parse().unwrap());
            word(&[Measurement::Requests(Ok(Quiet { held, last }))])
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
            Just(Err(Problem::Nothing)),
            Just(Err(Problem::Unhealthy)),
        ];
        let health = prop_oneof![Just(Ok(1.0)), Just(Ok(0.0)), Just(Err(Problem::Nothing))];
        (health, value, -1.0..2.0).prop_map(|(health, value, threshold)| Measurement::Prometheus {
            health,
            value,
            threshold,
        })
    }

    proptest! {
        /// Only evidence from every trigger lets a service sleep, and their order does not matter.
        #[test]
        fn it_sleeps_on_evidence_alone(mut answers in prop::collection::vec(measurements(), 0..5)) {
            let says = |answers: &[Measurement]| std::mem::discriminant(&verdict(answers, now(), COOLDOWN));
            let idle = matches!(verdict(&answers, now(), COOLDOWN), Verdict::Idle(_));
            let each = answers.iter().all(|one| {
                matches!(verdict(std::slice::from_ref(one), now(), COOLDOWN), Verdict::Idle(_))
            });
            prop_assert_eq!(idle, each && !answers.is_empty());
            let before = says(&answers);
            answers.reverse();
            prop_assert_eq!(before, says(&answers));
        }
    }
}
