use super::{super::history::LeaseState, *};

const DEADLINE: Duration = Duration::from_secs(10);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn held(history: &mut History, holder: &str, term: i64, renewed: i64) {
    history.leases.push(LeaseState {
        revision: history.leases.len() as u64,
        holder: (!holder.is_empty()).then(|| holder.to_owned()),
        term,
        renewed: at(renewed),
        duration: Duration::from_secs(15),
    });
}

fn stamp(who: &str, term: i64, begun: i64) -> WriteStamp {
    WriteStamp {
        who: who.into(),
        term,
        begun: at(begun),
    }
}

fn attempt(history: &mut History, stamp: WriteStamp, outcome: WriteOutcome) {
    if outcome == WriteOutcome::Written {
        history.ledger.push(LedgerEntry {
            revision: history.ledger.len() as u64,
            stamp: stamp.clone(),
        });
    }
    history.attempts.push(WriteAttempt { stamp, outcome });
}

/// a leads, is paused, b takes over, a resumes and is refused.
fn good() -> History {
    let mut history = History::default();
    let good = &mut history;
    held(good, "a", 0, 0);
    attempt(good, stamp("a", 0, 1), WriteOutcome::Written);
    held(good, "a", 0, 2);
    attempt(good, stamp("a", 0, 11), WriteOutcome::Written);
    held(good, "b", 1, 17);
    attempt(good, stamp("b", 1, 18), WriteOutcome::Written);
    attempt(good, stamp("a", 0, 20), WriteOutcome::Fenced);
    // Begun in time, arrived too late.
    attempt(good, stamp("a", 0, 11), WriteOutcome::Replaced);
    held(good, "", 1, 19);
    history
}

#[test]
fn a_good_history_has_no_breach() {
    assert_eq!(judge(&good(), DEADLINE), []);
}

#[test]
fn a_write_begun_after_the_deadline_is_found_though_the_server_refused_it() {
    for outcome in [
        WriteOutcome::Written,
        WriteOutcome::Replaced,
        WriteOutcome::Unknown,
    ] {
        let mut history = History::default();
        held(&mut history, "a", 0, 0);
        let late = stamp("a", 0, 10);
        attempt(&mut history, late.clone(), outcome);
        let breaches = judge(&history, DEADLINE);
        assert!(breaches.contains(&Breach::Late(late)), "{breaches:?}");
    }
}

#[test]
fn a_write_begun_before_the_term_is_found() {
    let mut history = History::default();
    held(&mut history, "a", 0, 5);
    attempt(&mut history, stamp("a", 0, 4), WriteOutcome::Written);
    let late = Breach::Late(stamp("a", 0, 4));
    assert_eq!(judge(&history, DEADLINE), [late.clone(), late]);
}

#[test]
fn letting_go_covers_nothing() {
    let mut history = History::default();
    held(&mut history, "a", 0, 0);
    held(&mut history, "", 0, 9);
    attempt(&mut history, stamp("a", 0, 12), WriteOutcome::Unknown);
    assert_eq!(judge(&history, DEADLINE), [Breach::Late(stamp("a", 0, 12))]);
}

#[test]
fn a_write_accepted_after_the_successors_is_found() {
    let mut history = good();
    let last = LedgerEntry {
        revision: 99,
        stamp: stamp("a", 0, 11),
    };
    history.ledger.push(last.clone());
    assert_eq!(judge(&history, DEADLINE), [Breach::Overtaken(last)]);
}

#[test]
fn a_write_begun_after_the_successors_is_found() {
    let mut history = History::default();
    held(&mut history, "a", 0, 0);
    held(&mut history, "b", 1, 3);
    attempt(&mut history, stamp("b", 1, 4), WriteOutcome::Written);
    attempt(&mut history, stamp("a", 0, 5), WriteOutcome::Replaced);
    assert_eq!(
        judge(&history, DEADLINE),
        [Breach::Entangled(stamp("a", 0, 5))]
    );
}

#[test]
fn two_in_one_term_are_found_in_the_lease_and_in_what_they_write() {
    let both = || BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    let mut history = History::default();
    held(&mut history, "a", 0, 0);
    held(&mut history, "b", 0, 1);
    assert_eq!(judge(&history, DEADLINE), [Breach::Shared(0, both())]);

    let mut history = History::default();
    held(&mut history, "a", 0, 0);
    attempt(&mut history, stamp("b", 0, 1), WriteOutcome::Replaced);
    let expected = [Breach::Shared(0, both()), Breach::Usurped(stamp("b", 0, 1))];
    assert_eq!(judge(&history, DEADLINE), expected);
}

#[test]
fn a_term_that_the_lease_never_had_is_found() {
    let mut history = good();
    attempt(&mut history, stamp("b", 7, 19), WriteOutcome::Unknown);
    let usurped = Breach::Usurped(stamp("b", 7, 19));
    assert_eq!(judge(&history, DEADLINE), [usurped]);
}
