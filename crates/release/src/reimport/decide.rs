//! Which failed tags are asked for, and when again: pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use neap_kit::{clock::Uptime, key::Key};

use super::{FailedTag, ReimportOptions};
use crate::oci::{
    digest::sha256,
    registry_backoff::{RegistryBackoff, doubled},
};

/// The longest time between two requests for a tag that keeps failing, or to a registry that does.
const MAX_DELAY: Duration = Duration::from_hours(6);

/// What was asked for before.
#[derive(Debug)]
pub struct Asked {
    tags: BTreeMap<(Key, String), AskedTag>,
    registries: RegistryBackoff,
    interval: Duration,
}

#[derive(Debug, Default)]
struct AskedTag {
    registry: String,
    /// Whether the last pass asked for it, so that its status says how the registry is doing.
    in_last_pass: bool,
    /// How often it was asked for.
    times: u32,
    /// Requests in a row that the API server refused.
    refused: u32,
    not_before: Uptime,
    /// Its place among those that were asked for as often.
    turn: u64,
}

impl AskedTag {
    fn order(&self) -> (u32, u32, u64) {
        (self.refused, self.times, self.turn)
    }
}

impl Asked {
    /// Nothing was asked for.
    pub fn new(options: &ReimportOptions) -> Self {
        Self {
            tags: BTreeMap::new(),
            registries: RegistryBackoff::new(options.interval, MAX_DELAY),
            interval: options.interval,
        }
    }

    /// What earlier processes asked for, as far as the status tells it. Waits follow from the attempts to import a
    /// tag, or from the time for which it fails; the order changes from pass to pass, so that each tag has its turn.
    pub fn from_status(
        failed: &[FailedTag],
        options: &ReimportOptions,
        now: Timestamp,
        uptime: Uptime,
    ) -> Self {
        let mut asked = Self::new(options);
        let pass = now.as_second() / options.interval.as_secs().max(1) as i64;
        for it in failed {
            let (times, wait) = match it.attempts {
                Some((failures, at)) => {
                    let delay = doubled(options.interval, failures.saturating_sub(1));
                    let wait = delay.min(MAX_DELAY).saturating_sub(passed(at, now));
                    (failures, wait)
                }
                None => (0, wait_of_age(it.since, options.interval, now)),
            };
            if it.registry_failed {
                asked.registries.suspect(&it.registry, uptime);
            }
            let tag = AskedTag {
                registry: it.registry.clone(),
                times,
                not_before: uptime.saturating_add(wait),
                turn: turn(it, pass),
                ..AskedTag::default()
            };
            asked.tags.insert(key(it), tag);
        }
        asked
    }

    /// Learns from the status what became of the requests of the last pass, and forgets what no longer fails.
    pub fn learn(&mut self, failed: &[FailedTag], now: Uptime) {
        let failing: BTreeMap<_, _> = failed.iter().map(|it| (key(it), it)).collect();
        let mut works: BTreeMap<String, bool> = BTreeMap::new();
        for (key, tag) in self.tags.iter_mut().filter(|(_, tag)| tag.in_last_pass) {
            tag.in_last_pass = false;
            let answered = failing.get(key).is_none_or(|it| !it.registry_failed);
            *works.entry(tag.registry.clone()).or_default() |= answered;
        }
        self.tags.retain(|key, _| failing.contains_key(key));
        let recovered: BTreeSet<_> = works
            .into_iter()
            .filter_map(|(host, works)| {
                if works {
                    return self.registries.succeeded(&host).then_some(host);
                }
                self.registries.failed(&host, None, now);
                None
            })
            .collect();
        // They waited for the registry.
        for (key, tag) in &mut self.tags {
            if recovered.contains(&tag.registry) && failing[key].registry_failed {
                tag.not_before = now;
            }
        }
    }

    /// Notes that an import was asked for. A tag that fails again waits twice as long as before.
    pub fn note(&mut self, it: &FailedTag, now: Uptime) {
        let interval = self.interval;
        let tag = self.entry(it);
        let delay = doubled(interval, tag.times).min(MAX_DELAY);
        tag.not_before = now.saturating_add(delay);
        tag.times = tag.times.saturating_add(1);
        tag.refused = 0;
        tag.in_last_pass = true;
    }

    /// Notes that the API server did not take the request. Others are asked for before it.
    pub fn note_refused(&mut self, it: &FailedTag) {
        let tag = self.entry(it);
        tag.refused = tag.refused.saturating_add(1);
    }

    fn entry(&mut self, it: &FailedTag) -> &mut AskedTag {
        self.tags.entry(key(it)).or_insert_with(|| AskedTag {
            registry: it.registry.clone(),
            ..AskedTag::default()
        })
    }
}

/// Which of the failed tags are asked for now: those that were asked for least first, so that none waits for ever
/// behind tags that keep failing. Of a registry that failed, one tag finds out whether it works again.
pub fn decide(
    failed: &[FailedTag],
    asked: &Asked,
    options: &ReimportOptions,
    now: Uptime,
) -> Vec<FailedTag> {
    let mut by_registry: BTreeMap<&str, usize> = BTreeMap::new();
    let before = |it: &FailedTag| asked.tags.get(&key(it));
    let due = failed.iter().filter(|it| {
        let is_due = before(it).is_none_or(|tag| now >= tag.not_before);
        is_due && asked.registries.wait(&it.registry, now).is_zero()
    });
    let mut due: Vec<_> = due.collect();
    due.sort_by_key(|it| before(it).map(AskedTag::order).unwrap_or_default());
    let chosen = due.into_iter().filter(|it| {
        let limit = if asked.registries.is_failing(&it.registry) {
            1
        } else {
            options.per_registry
        };
        let count = by_registry.entry(&it.registry).or_default();
        *count += 1;
        *count <= limit
    });
    chosen.take(options.per_pass).cloned().collect()
}

fn key(it: &FailedTag) -> (Key, String) {
    (it.stream.clone(), it.tag.clone())
}

/// The wait of a tag of which only the time is known for which it fails: it is asked for in the passes 0, 1, 3, 7, 15
/// and so on after it failed, until the distance is the longest delay.
fn wait_of_age(since: Option<Timestamp>, interval: Duration, now: Timestamp) -> Duration {
    let Some(since) = since.filter(|_| !interval.is_zero()) else {
        return Duration::ZERO;
    };
    let passes = passed(since, now).as_nanos() / interval.as_nanos() + 1;
    let longest = (MAX_DELAY.as_nanos() / interval.as_nanos()).max(1);
    let is_due = if passes < longest {
        passes.is_power_of_two()
    } else {
        passes.is_multiple_of(longest)
    };
    if is_due { Duration::ZERO } else { interval }
}

fn passed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

/// A number that is another for each tag and each pass.
fn turn(it: &FailedTag, pass: i64) -> u64 {
    let digest = sha256(format!("{pass} {}:{}", it.stream, it.tag).as_bytes());
    u64::from_str_radix(&digest.digest()[..16], 16).unwrap_or_default()
}
