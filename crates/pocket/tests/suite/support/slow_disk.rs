//! A disk that syncs when it is allowed to.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex},
};

use neap_pocket::store::journal::{Disk, DiskFile, FolderDisk};

/// Lets syncs through or holds them back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Permit(Arc<(Mutex<bool>, Condvar)>);

impl Permit {
    pub(crate) fn set(&self, allowed: bool) {
        *self.0.0.lock().unwrap() = allowed;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let allowed = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(allowed, |allowed| !*allowed).unwrap());
    }
}

/// A folder whose files are synced with a permit.
#[derive(Debug)]
pub(crate) struct SlowDisk {
    pub(crate) folder: FolderDisk,
    pub(crate) permit: Permit,
}

#[derive(Debug)]
struct SlowFile(Box<dyn DiskFile>, Permit);

impl SlowDisk {
    fn slow(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(SlowFile(file, self.permit.clone()))
    }
}

impl Disk for SlowDisk {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.folder.read(name)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.folder.create(name).map(|file| self.slow(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.folder.open(name).map(|file| self.slow(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.folder.sync_folder()
    }
}

impl DiskFile for SlowFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, bytes)
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.1.wait();
        self.0.sync()
    }
}
