//! Archives of programs: tar with gzip, and zip for Windows.

use std::io::{self, Write};

use flate2::{Compression, Crc, GzBuilder, write::DeflateEncoder};
use tar::{EntryType, Header};

use super::{Program, table::Tool};

/// The archive of a program, with a text about it.
pub fn pack(tool: &Tool, program: &Program, readme: &str) -> io::Result<Vec<u8>> {
    if tool.os == "windows" {
        let readme = readme.replace('\n', "\r\n");
        let files = [
            ("README.md", readme.as_bytes()),
            (&*tool.file_name(), &program.content),
        ];
        return zip(&files);
    }
    let gzip = GzBuilder::new().mtime(0);
    let mut archive = tar::Builder::new(gzip.write(Vec::new(), Compression::default()));
    let header = |mode: u32, size: usize| {
        let mut header = Header::new_ustar();
        header.set_mode(mode);
        header.set_size(size as u64);
        header.set_mtime(program.mtime.max(0) as u64);
        header
    };
    let mut about = header(0o644, readme.len());
    archive.append_data(&mut about, "README.md", readme.as_bytes())?;
    let name = tool.file_name();
    let mut file = header(0o755, program.content.len());
    archive.append_data(&mut file, &name, program.content.as_slice())?;
    if let Some(second) = tool.second_name() {
        let mut link = header(0o755, 0);
        link.set_entry_type(EntryType::Link);
        archive.append_link(&mut link, second, &name)?;
    }
    archive.into_inner()?.finish()
}

/// Bits, versions and dates of a zip entry: UTF-8 names, deflate, the first day that zip knows.
const VERSION: u16 = 20;
const DEFLATE: u16 = 8;
const FIRST_DAY: u16 = 0x21;

/// A zip archive: each file with its head, and the heads again at the end.
fn zip(files: &[(&str, &[u8])]) -> io::Result<Vec<u8>> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::default());
        packed.write_all(content)?;
        let packed = packed.finish()?;
        let mut crc = Crc::new();
        crc.update(content);
        let too_large = |_| io::Error::other("a file of 4 GiB and more does not fit into a zip");
        let sizes = [packed.len(), content.len(), out.len()].map(u32::try_from);
        let [packed_size, size, offset] = sizes;
        let offset = offset.map_err(too_large)?;
        let mut head = Vec::new();
        for number in [VERSION, 0x800, DEFLATE, 0, FIRST_DAY] {
            head.extend_from_slice(&number.to_le_bytes());
        }
        for number in [
            crc.sum(),
            packed_size.map_err(too_large)?,
            size.map_err(too_large)?,
        ] {
            head.extend_from_slice(&number.to_le_bytes());
        }
        head.extend_from_slice(&(name.len() as u16).to_le_bytes());
        head.extend_from_slice(&[0, 0]);
        out.extend_from_slice(b"PK\x03\x04");
        out.extend_from_slice(&head);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&packed);
        directory.extend_from_slice(b"PK\x01\x02");
        directory.extend_from_slice(&VERSION.to_le_bytes());
        directory.extend_from_slice(&head);
        // No comment, the first disk, no attributes.
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let (start, size) = (out.len() as u32, directory.len() as u32);
    let count = (files.len() as u16).to_le_bytes();
    out.extend_from_slice(&directory);
    out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    out.extend_from_slice(&[count, count].concat());
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::payload_image::tools::table::{Systems, select};

    fn packed(systems: &str) -> Vec<u8> {
        let tool = select(Some("oc"), &Systems::parse(systems).unwrap(), "amd64")[0];
        let program = Program {
            content: b"a program".repeat(100),
            mtime: 1_767_323_110,
            warnings: Vec::new(),
        };
        pack(&tool, &program, "one\ntwo\n").unwrap()
    }

    #[test]
    fn tar_has_the_program_under_both_names() {
        let bytes = packed("linux");
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&bytes[..]));
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            let name = entry.path().unwrap().display().to_string();
            (name, header.mode().unwrap(), header.mtime().unwrap())
        });
        let entries: Vec<_> = entries.collect();
        let time = 1_767_323_110;
        assert_eq!(
            entries,
            [
                ("README.md".to_owned(), 0o644, time),
                ("oc".to_owned(), 0o755, time),
                ("kubectl".to_owned(), 0o755, time)
            ]
        );
        assert_eq!(bytes, packed("linux"), "the same program, the same archive");
    }

    #[test]
    fn zip_is_read_by_another_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("oc.zip");
        std::fs::write(&path, packed("windows")).unwrap();
        let script = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\n\
                      print(z.namelist(), len(z.read('oc.exe')), z.read('README.md'))";
        let run = Command::new("python3")
            .args(["-c", script])
            .arg(&path)
            .output();
        // Where there is no Python, the structure is checked only as far as it is written here.
        let Ok(run) = run else {
            return;
        };
        let printed = String::from_utf8_lossy(&run.stdout).into_owned();
        assert_eq!(
            printed.trim(),
            "['README.md', 'oc.exe'] 900 b'one\\r\\ntwo\\r\\n'",
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
    }
}
