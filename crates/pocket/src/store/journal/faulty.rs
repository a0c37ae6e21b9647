//! A disk for tests that loses what was not synced, and fails on demand.
//!
//! It keeps two states: what a running process sees, and what is durable, with the writes between
//! them. A power cut leaves the durable part and whatever the chosen [`Loss`] keeps of the rest.
//! Durable bytes stay so while their neighbours are written, or while they are written again
//! unchanged; nothing else is guaranteed.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{Disk, DiskFile};

/// A small generator of reproducible choices.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// The fate of unsynced bytes and names in a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// All of it is lost.
    Everything,
    /// A prefix of the writes arrived in order; the next one only in part.
    Later,
    /// Each sector arrived or not; those that did not keep what they held.
    Sectors,
    /// The same, but what did not arrive reads as noise or zeroes.
    Noise,
    /// All of it arrived, and only the confirmation was lost.
    Nothing,
    /// Not a power cut: the process died, and its writes are still in memory, unsynced.
    Process,
}

pub(crate) const LOSSES: [Loss; 6] = [
    Loss::Everything,
    Loss::Later,
    Loss::Sectors,
    Loss::Noise,
    Loss::Nothing,
    Loss::Process,
];

/// The calls that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskCall {
    Create,
    Write,
    SetLen,
    Sync,
    Rename,
    Remove,
    SyncFolder,
}

#[derive(Debug, Clone)]
enum Pending {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

#[derive(Debug, Clone, Default)]
struct Inode {
    seen: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Pending>,
}

#[derive(Debug, Clone)]
enum Naming {
    Link(String, u64),
    Rename(String, String, u64),
    Unlink(String),
}

#[derive(Debug, Clone, Default)]
struct DiskState {
    inodes: HashMap<u64, Inode>,
    seen: BTreeMap<String, u64>,
    durable: BTreeMap<String, u64>,
    pending: Vec<Naming>,
    calls: usize,
    cut_at: Option<usize>,
    fault: Option<(DiskCall, io::ErrorKind)>,
}

/// Clones share the disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct FaultyDisk(Arc<Mutex<DiskState>>);

impl FaultyDisk {
    /// The number of calls that changed something.
    pub(crate) fn calls(&self) -> usize {
        self.0.lock().calls
    }

    /// Cuts the power in the call after the next `calls`.
    pub(crate) fn cut_after(&self, calls: usize) {
        let mut state = self.0.lock();
        state.cut_at = Some(state.calls + calls);
    }

    /// Whether the power was cut.
    pub(crate) fn is_cut(&self) -> bool {
        let state = self.0.lock();
        state.cut_at.is_some_and(|at| state.calls > at)
    }

    /// Lets this kind of call fail from now on.
    pub(crate) fn fail(&self, call: DiskCall, kind: io::ErrorKind) {
        self.0.lock().fault = Some((call, kind));
    }

    /// The disk after the power is back, or the process was started again.
    pub(crate) fn restart(&self, loss: Loss, dice: &mut Dice) -> Self {
        let mut state = self.0.lock().clone();
        (state.cut_at, state.fault) = (None, None);
        if loss != Loss::Process {
            lose_names(&mut state, loss, dice);
            let mut inodes: Vec<_> = state.inodes.iter_mut().collect();
            inodes.sort_unstable_by_key(|(id, _)| **id);
            for (_, inode) in inodes {
                lose_bytes(inode, loss, dice);
            }
        }
        Self(Arc::new(Mutex::new(state)))
    }

    /// An independent disk with the same durable content.
    pub(crate) fn copy(&self) -> Self {
        self.restart(Loss::Everything, &mut Dice::new(0))
    }

    /// Changes a file as a foreign process would.
    pub(crate) fn tamper(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.0.lock();
        let id = state.seen[name];
        let inode = state.inodes.entry(id).or_default();
        change(&mut inode.seen);
        inode.durable.clone_from(&inode.seen);
    }

    fn call(&self, call: DiskCall, act: impl FnOnce(&mut DiskState, bool)) -> io::Result<()> {
        let mut state = self.0.lock();
        let dead = state.cut_at.is_some_and(|at| state.calls > at);
        state.calls += 1;
        if dead {
            return Err(io::Error::other("the power is off"));
        }
        let cut = state.cut_at.is_some_and(|at| state.calls > at);
        let fault = state.fault.filter(|(which, _)| *which == call);
        // A failing write or sync has an effect; the other calls do nothing when they fail.
        if cut || fault.is_none() || matches!(call, DiskCall::Write | DiskCall::Sync) {
            act(&mut state, !cut && fault.is_none());
        }
        match fault {
            _ if cut => Err(io::Error::other("the power went off")),
            Some((_, kind)) => Err(kind.into()),
            None => Ok(()),
        }
    }

    fn id(&self, name: &str) -> io::Result<u64> {
        let state = self.0.lock();
        let found = state.seen.get(name).copied();
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn file(&self, id: u64) -> Box<dyn DiskFile> {
        Box::new(FaultyFile(self.clone(), id))
    }
}

fn lose_names(state: &mut DiskState, loss: Loss, dice: &mut Dice) {
    let pending = std::mem::take(&mut state.pending);
    let kept = dice.below(pending.len() + 1);
    for (at, naming) in pending.into_iter().enumerate() {
        let arrived = match loss {
            Loss::Everything => false,
            Loss::Later => at < kept,
            Loss::Sectors | Loss::Noise => dice.coin(),
            Loss::Nothing | Loss::Process => true,
        };
        if arrived {
            name(&mut state.durable, naming);
        }
    }
    state.seen = state.durable.clone();
}

fn name(names: &mut BTreeMap<String, u64>, naming: Naming) {
    match naming {
        Naming::Link(to, id) => drop(names.insert(to, id)),
        Naming::Unlink(from) => drop(names.remove(&from)),
        Naming::Rename(from, to, id) => {
            names.remove(&from);
            names.insert(to, id);
        }
    }
}

fn lose_bytes(inode: &mut Inode, loss: Loss, dice: &mut Dice) {
    let pending = std::mem::take(&mut inode.pending);
    let kept = dice.below(pending.len() + 1);
    let mut len = inode.durable.len();
    for (at, change) in pending.into_iter().enumerate() {
        let longer = lengthens(&mut len, &change);
        let whole = match loss {
            Loss::Everything => false,
            Loss::Later => at < kept,
            Loss::Nothing | Loss::Process => true,
            Loss::Sectors | Loss::Noise => dice.coin() && matches!(change, Pending::SetLen(_)),
        };
        match change {
            change if whole => apply(&mut inode.durable, &change),
            Pending::Write(offset, mut bytes) if loss == Loss::Later && at == kept => {
                bytes.truncate(dice.below(bytes.len() + 1));
                apply(&mut inode.durable, &Pending::Write(offset, bytes));
            }
            Pending::Write(offset, bytes) if matches!(loss, Loss::Sectors | Loss::Noise) => {
                if longer && dice.coin() {
                    let end = inode.durable.len().max(offset + bytes.len());
                    inode.durable.resize(end, 0);
                }
                tear(&mut inode.durable, offset, &bytes, loss, dice);
            }
            Pending::Write(..) | Pending::SetLen(_) => {}
        }
    }
    inode.seen.clone_from(&inode.durable);
}

/// Whether a write extended the file by itself, without a call to set its length.
fn lengthens(len: &mut usize, change: &Pending) -> bool {
    let before = *len;
    match change {
        Pending::SetLen(to) => *len = *to,
        Pending::Write(offset, bytes) => *len = before.max(offset + bytes.len()),
    }
    matches!(change, Pending::Write(..)) && *len > before
}

/// Writes some sectors of `bytes`. They are small here so that small writes have many.
fn tear(file: &mut [u8], offset: usize, bytes: &[u8], loss: Loss, dice: &mut Dice) {
    const SECTOR: usize = 16;
    let mut at = offset;
    while at < offset + bytes.len() {
        let end = (at / SECTOR * SECTOR + SECTOR).min(offset + bytes.len());
        let mut sector = bytes[at - offset..end - offset].to_vec();
        let arrived = dice.coin();
        if !arrived && loss == Loss::Noise {
            let zeroes = dice.coin();
            for (byte, old) in sector.iter_mut().zip(file.get(at..end).unwrap_or_default()) {
                if byte != old {
                    *byte = if zeroes { 0 } else { dice.below(256) as u8 };
                }
            }
        }
        // A file that did not get its new length has no sectors there.
        if (arrived || loss == Loss::Noise) && end <= file.len() {
            file[at..end].copy_from_slice(&sector);
        }
        at = end;
    }
}

fn apply(file: &mut Vec<u8>, change: &Pending) {
    match change {
        Pending::SetLen(len) => file.resize(*len, 0),
        Pending::Write(offset, bytes) => {
            let end = offset + bytes.len();
            file.resize(file.len().max(end), 0);
            file[*offset..end].copy_from_slice(bytes);
        }
    }
}

impl Disk for FaultyDisk {
    fn path(&self, name: &str) -> PathBuf {
        Path::new("/data").join(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().seen.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let id = self.id(name)?;
        Ok(self.0.lock().inodes[&id].seen.clone())
    }

    fn create(&self, file: &str) -> io::Result<Box<dyn DiskFile>> {
        let id = self.calls() as u64;
        self.call(DiskCall::Create, |state, _| {
            state.inodes.insert(id, Inode::default());
            state.seen.insert(file.into(), id);
            state.pending.push(Naming::Link(file.into(), id));
        })?;
        Ok(self.file(id))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(self.id(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let naming = Naming::Rename(from.into(), to.into(), self.id(from)?);
        self.call(DiskCall::Rename, |state, _| {
            name(&mut state.seen, naming.clone());
            state.pending.push(naming);
        })
    }

    fn remove(&self, file: &str) -> io::Result<()> {
        self.id(file)?;
        self.call(DiskCall::Remove, |state, _| {
            state.seen.remove(file);
            state.pending.push(Naming::Unlink(file.into()));
        })
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.call(DiskCall::SyncFolder, |state, works| {
            if works {
                state.durable.clone_from(&state.seen);
                state.pending.clear();
            }
        })
    }
}

#[derive(Debug)]
struct FaultyFile(FaultyDisk, u64);

impl FaultyFile {
    fn change(&self, call: DiskCall, change: Pending) -> io::Result<()> {
        self.0.call(call, |state, _| {
            let inode = state.inodes.entry(self.1).or_default();
            apply(&mut inode.seen, &change);
            inode.pending.push(change);
        })
    }
}

impl DiskFile for FaultyFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let fails = matches!(self.0.0.lock().fault, Some((DiskCall::Write, _)));
        let written = if fails { bytes.len() / 2 } else { bytes.len() };
        let change = Pending::Write(offset as usize, bytes[..written].to_vec());
        self.change(DiskCall::Write, change)
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.change(DiskCall::SetLen, Pending::SetLen(len as usize))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.call(DiskCall::Sync, |state, works| {
            let failed = state.fault.is_some_and(|(call, _)| call == DiskCall::Sync);
            let inode = state.inodes.entry(self.1).or_default();
            if works {
                for change in std::mem::take(&mut inode.pending) {
                    apply(&mut inode.durable, &change);
                }
            } else if failed {
                // As on a real system: the bytes stay visible, count as clean, and are not on the
                // disk.
                inode.pending.retain(|p| matches!(p, Pending::SetLen(_)));
            }
        })
    }
}
