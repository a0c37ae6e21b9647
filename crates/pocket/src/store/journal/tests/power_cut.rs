//! Cuts the power in every call that changes the disk, in every way, and twice.

use super::*;
use crate::store::journal::faulty::{Dice, LOSSES, Loss};

const ROUNDS: usize = 40;

/// A client of the journal that records what was confirmed.
struct Client {
    disk: FaultyDisk,
    /// Everything confirmed.
    model: Model,
    /// The batch that was not confirmed.
    unanswered: Vec<Record>,
}

impl Client {
    fn new() -> Self {
        Self {
            disk: FaultyDisk::default(),
            model: Model::default(),
            unanswered: Vec::new(),
        }
    }

    fn run(&mut self, dice: &mut Dice, rounds: usize) -> Result<(), Error> {
        let (mut journal, recovered) = open(&self.disk)?;
        self.adopt(&recovered);
        for _ in 0..rounds {
            match dice.below(12) {
                0 => {
                    let live = self.model.live();
                    journal.compact(self.model.revision, &mut live.into_iter())?;
                }
                1 => {
                    let compaction = journal.begin_compaction(self.model.revision)?;
                    let live = self.model.live();
                    self.write(&mut journal, dice)?;
                    let snapshot = compaction.write(&mut live.into_iter())?;
                    self.write(&mut journal, dice)?;
                    journal.finish_compaction(snapshot)?;
                }
                2 => drop(journal.begin_compaction(self.model.revision)?),
                3 => {
                    journal.close()?;
                    let (reopened, recovered) = open(&self.disk)?;
                    self.adopt(&recovered);
                    journal = reopened;
                }
                _ => self.write(&mut journal, dice)?,
            }
        }
        Ok(())
    }

    fn write(&mut self, journal: &mut Journal, dice: &mut Dice) -> Result<(), Error> {
        let first = self.model.revision + 1 + dice.below(2) as u64;
        let count = 1 + dice.below(3) as u64;
        self.unanswered = (first..first + count).map(|r| write(r, dice)).collect();
        journal.append(&self.unanswered)?;
        self.model.apply(&self.unanswered);
        self.unanswered.clear();
        Ok(())
    }

    /// The content after a restart must be what was confirmed, with or without the whole
    /// unconfirmed batch; from then on it counts as confirmed.
    fn adopt(&mut self, recovered: &Recovered) {
        let mut with_unanswered = self.model.clone();
        with_unanswered.apply(&std::mem::take(&mut self.unanswered));
        if !self.model.matches(recovered) {
            assert!(
                with_unanswered.matches(recovered),
                "promised {:#?}\nfound {recovered:#?}",
                self.model
            );
            self.model = with_unanswered;
        }
    }

    /// Works until the power fails in the call after the next `calls`, and is back.
    fn run_into_cut(&mut self, work: &mut Dice, calls: usize, loss: Loss, dice: &mut Dice) {
        self.disk.cut_after(calls);
        let error = self.run(work, ROUNDS).expect_err("there is a cut");
        assert!(self.disk.is_cut(), "another error ended the run: {error}");
        self.disk = self.disk.restart(loss, dice);
    }
}

fn write(revision: u64, dice: &mut Dice) -> Record {
    let key = format!("key{}", dice.below(6));
    match dice.below(4) {
        0 => delete(revision, &key),
        _ => put(revision, &key, &"v".repeat(dice.below(200))),
    }
}

fn calls_of(seed: u64) -> usize {
    let mut client = Client::new();
    client.run(&mut Dice::new(seed), ROUNDS).unwrap();
    client.disk.calls()
}

/// The seed, the call and the loss are in the output of a failing test.
fn cut(seed: u64, call: usize, loss: Loss) {
    println!("seed {seed}, power cut in call {call}, loss {loss:?}");
    let mut client = Client::new();
    let mut dice = Dice::new(seed << 32 | (call as u64) << 8 | loss as u64);
    client.run_into_cut(&mut Dice::new(seed), call, loss, &mut dice);
    // Again, soon: often while the first cut is still being repaired.
    for _ in 0..3 {
        let (calls, loss) = (dice.below(12), LOSSES[dice.below(LOSSES.len())]);
        println!("  again in call {calls}, loss {loss:?}");
        client.run_into_cut(&mut dice.clone(), calls, loss, &mut dice);
    }
    client.run(&mut dice, 5).unwrap();
    let found = open(&client.disk.copy()).unwrap().1;
    assert!(client.model.matches(&found), "{found:#?}");
}

#[test]
fn a_power_cut_in_any_call_loses_nothing_acknowledged() {
    for seed in 1..=4 {
        let calls = calls_of(seed);
        assert!(calls > 100, "the work is too small: {calls} calls");
        for call in 0..calls {
            for loss in LOSSES {
                cut(seed, call, loss);
            }
        }
    }
}

#[test]
fn the_disk_of_these_tests_does_forget() {
    let disk = FaultyDisk::default();
    let mut file = disk.create("f").unwrap();
    file.write_at(0, b"durable").unwrap();
    file.sync().unwrap();
    disk.sync_folder().unwrap();
    file.write_at(0, b"changed").unwrap();
    disk.rename("f", "g").unwrap();
    let after = disk.restart(Loss::Everything, &mut Dice::new(1));
    assert_eq!(after.read("f").unwrap(), b"durable");
    let after = disk.restart(Loss::Nothing, &mut Dice::new(1));
    assert_eq!(after.read("g").unwrap(), b"changed");
}
