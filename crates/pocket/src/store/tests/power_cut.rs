//! Cuts the power under a store with many concurrent writers.

use std::collections::BTreeMap;

use tokio::task::JoinSet;

use super::*;
use crate::store::journal::{
    JournalSettings,
    faulty::{Dice, FaultyDisk, LOSSES, Loss},
};

const WRITERS: u64 = 8;
/// Objects of each writer.
const OWNED: usize = 3;
const CUTS: usize = 5;

/// The revision and value of an object, if it exists.
type StoredValue = Option<(u64, u64)>;

/// What was confirmed to one writer.
#[derive(Default)]
struct Writer {
    promised: BTreeMap<String, StoredValue>,
    /// The write that failed because the store broke, and the value it leaves.
    doubtful: Option<(String, Option<u64>)>,
    written: u64,
}

impl Writer {
    fn new(index: u64) -> Self {
        let names = (0..OWNED).map(|object| format!("w{index}-{object}"));
        Self {
            promised: names.map(|name| (name, None)).collect(),
            ..Self::default()
        }
    }

    /// Writes until the store refuses.
    async fn work(&mut self, store: &Store, mut dice: Dice) {
        loop {
            let chosen = dice.below(OWNED);
            let (name, held) = self.promised.iter().nth(chosen).unwrap();
            let (name, held) = (name.clone(), *held);
            self.written += 1;
            let value = object(&name, self.written);
            let (expect, put, leaves) = match held {
                None => (Expect::Absent, Put::Object(&value), Some(self.written)),
                Some((revision, _)) if dice.below(4) == 0 => {
                    (Expect::Revision(revision), Put::Gone(&value), None)
                }
                Some((revision, _)) => {
                    let put = Put::Object(&value);
                    (Expect::Revision(revision), put, Some(self.written))
                }
            };
            let path = format!("d/{name}");
            match store.write(MAPS, &path, expect, put, now()).await {
                Ok(object) => {
                    let held = leaves.map(|value| (object.revision(), value));
                    self.promised.insert(name, held);
                }
                Err(Error::Broken(_)) => {
                    self.doubtful = Some((name, leaves));
                    return;
                }
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }

    /// What is found counts as confirmed from now on.
    fn settle(&mut self, store: &Store, committed: u64) {
        let doubtful = self.doubtful.take();
        for (name, promised) in &mut self.promised {
            let found = store.head(MAPS, &format!("d/{name}"));
            let found = found.and_then(|head| head.object).map(|object| {
                let value = object.value()["data"]["v"].as_str().unwrap().parse();
                (object.revision(), value.unwrap())
            });
            if found == *promised {
                continue;
            }
            let landed = doubtful.as_ref().is_some_and(|(which, leaves)| {
                which == name && *leaves == found.map(|(_, value)| value)
            });
            let newer = found.is_none_or(|(revision, _)| revision > committed);
            assert!(
                landed && newer,
                "{name}: promised {promised:?}, in doubt {doubtful:?}, found {found:?}"
            );
            *promised = found;
        }
    }
}

/// Compacts all the time, in several slices.
fn open(disk: &FaultyDisk) -> Result<Store, journal::Error> {
    let settings = JournalSettings {
        compact_above: 2048,
        step: 512,
        ..JournalSettings::default()
    };
    let disk = Box::new(disk.clone());
    Store::durable_with(disk, settings, Retention::default(), now())
}

/// Writes concurrently until the power fails; returns the newest revision that any reader saw.
async fn run_into_cut(store: &Store, writers: &mut Vec<Writer>, dice: &mut Dice) -> u64 {
    let mut running = JoinSet::new();
    for mut writer in writers.drain(..) {
        let (store, dice) = (store.clone(), Dice::new(dice.below(1 << 30) as u64));
        running.spawn(async move {
            writer.work(&store, dice).await;
            writer
        });
    }
    while let Some(writer) = running.join_next().await {
        writers.push(writer.unwrap());
    }
    store.revision()
}

async fn cut_again_and_again(seed: u64, first: Loss) {
    println!("seed {seed}, first loss {first:?}");
    let mut dice = Dice::new(seed);
    let mut disk = FaultyDisk::default();
    let mut writers: Vec<_> = (0..WRITERS).map(Writer::new).collect();
    let (mut loss, mut committed) = (first, 0);
    for _ in 0..CUTS {
        disk.cut_after(dice.below(60));
        // The power may fail while the store is still being opened.
        if let Ok(store) = open(&disk) {
            assert!(store.revision() >= committed, "the revision went back");
            for writer in &mut writers {
                writer.settle(&store, committed);
            }
            committed = run_into_cut(&store, &mut writers, &mut dice).await;
            store.close();
        }
        assert!(disk.is_cut(), "another error ended the run");
        disk = disk.restart(loss, &mut dice);
        loss = LOSSES[dice.below(LOSSES.len())];
    }
    let store = open(&disk).unwrap();
    assert!(store.revision() >= committed, "the revision went back");
    for writer in &mut writers {
        writer.settle(&store, committed);
    }
    store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_of_many_survive_power_cuts_and_the_revision_never_goes_back() {
    for seed in 1..=60 {
        for loss in LOSSES {
            cut_again_and_again(seed, loss).await;
        }
    }
}
