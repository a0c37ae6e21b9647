//! `cargo xtask dist`: the archive of `neap` for people: program, completions, manual pages, licences,
//! checksums and bill of materials.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use clap::Args;
use flate2::{Compression, GzBuilder};

use crate::{
    image::{archive::digest, sbom, static_program},
    process,
};

#[derive(Debug, Args)]
pub(crate) struct Dist {
    /// Profile to build with; `release` is quicker to build, `dist` is smaller and faster
    #[arg(long, default_value = "dist")]
    profile: String,
}

/// Builds the archive under `target/dist`.
pub(crate) fn run(dist: &Dist) -> Result<bool> {
    let program = static_program(&dist.profile)?;
    let name = format!("neap-{}-linux-amd64", env!("CARGO_PKG_VERSION"));
    let folder = process::root().join("target/dist");
    fs::create_dir_all(&folder)?;
    let archive = folder.join(format!("{name}.tar.gz"));
    let files = files(&program)?;
    write(&archive, &name, &files)?;
    let bill = folder.join(format!("{name}.spdx.json"));
    fs::write(&bill, sbom::document()?)?;
    let mut sums = String::new();
    for path in [&archive, &bill] {
        let sum = digest(&fs::read(path)?);
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let sum = sum.trim_start_matches("sha256:");
        sums.extend([sum, "  ", &*file, "\n"]);
        println!(" ✓ target/dist/{file}");
    }
    fs::write(folder.join("SHA256SUMS"), sums)?;
    println!(" ✓ target/dist/SHA256SUMS");
    Ok(true)
}

/// A path within the archive, its mode and its content.
type Packed = (PathBuf, u32, Vec<u8>);

fn files(program: &Path) -> Result<Vec<Packed>> {
    let mut files = vec![(PathBuf::from("neap"), 0o755, fs::read(program)?)];
    for (shell, name) in [
        ("bash", "neap.bash"),
        ("zsh", "_neap"),
        ("fish", "neap.fish"),
    ] {
        let text = process::output(Command::new(program).args(["completion", shell]))?;
        files.push((
            Path::new("completions").join(name),
            0o644,
            text.into_bytes(),
        ));
    }
    let pages = tempfile::tempdir()?;
    process::run(Command::new(program).arg("manual").arg(pages.path()))?;
    for page in fs::read_dir(pages.path())? {
        let page = page?;
        files.push((
            Path::new("man").join(page.file_name()),
            0o644,
            fs::read(page.path())?,
        ));
    }
    for name in ["LICENSE", "NOTICE", "README.md", "CHANGELOG.md"] {
        let content = fs::read(process::root().join(name)).with_context(|| name.to_owned())?;
        files.push((name.into(), 0o644, content));
    }
    // The order of a folder is the file system's.
    files.sort();
    Ok(files)
}

fn write(path: &Path, top: &str, files: &[Packed]) -> Result<()> {
    // Without a time, so that equal files are an equal archive.
    let gzip = GzBuilder::new()
        .mtime(0)
        .write(File::create(path)?, Compression::best());
    let mut tar = tar::Builder::new(gzip);
    for (name, mode, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(*mode);
        header.set_size(content.len() as u64);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        tar.append_data(&mut header, Path::new(top).join(name), &content[..])?;
    }
    tar.into_inner()?.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_files_are_an_equal_archive() {
        let folder = tempfile::tempdir().unwrap();
        let files = [(PathBuf::from("neap"), 0o755, b"program".to_vec())];
        let (one, two) = (folder.path().join("1"), folder.path().join("2"));
        write(&one, "neap-1", &files).unwrap();
        write(&two, "neap-1", &files).unwrap();
        assert_eq!(fs::read(&one).unwrap(), fs::read(&two).unwrap());
        let unpacked = flate2::read::GzDecoder::new(File::open(&one).unwrap());
        let mut unpacked = tar::Archive::new(unpacked);
        let entry = unpacked.entries().unwrap().next().unwrap().unwrap();
        assert_eq!(entry.path().unwrap(), Path::new("neap-1/neap"));
        assert_eq!(entry.header().mode().unwrap(), 0o755);
    }
}
