//! A program with the image's flags resolves names where nothing but itself and the files that
//! Kubernetes mounts exist: a static C library could need its shared parts for that.

use std::{
    fs,
    net::{Ipv4Addr, UdpSocket},
    path::Path,
    process::Command,
    thread,
    time::Duration,
};

use crate::process;

/// Prints the addresses of each of its arguments.
const PROGRAM: &str = r#"
use std::net::{IpAddr, ToSocketAddrs};

fn main() {
    for name in std::env::args().skip(1) {
        let found = (name.as_str(), 0).to_socket_addrs().into_iter().flatten();
        let found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
        println!("{name} {found:?}");
    }
}
"#;
/// The address of the name server.
const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(127, 77, 0, 53);
/// Its only name, and the address of that.
const SERVICE: (&str, [u8; 4]) = ("cart.shop.svc.cluster.local", [10, 1, 2, 3]);
/// As a pod has them.
const HOSTS: &str = "127.0.0.1\tlocalhost\n127.9.9.9\there.example\n";
const RESOLV_CONF: &str = "nameserver 127.77.0.53\nsearch shop.svc.cluster.local svc.cluster.local\noptions ndots:5 timeout:5\n";

#[test]
fn a_program_with_the_flags_of_the_image_resolves_names_on_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("resolve.rs");
    fs::write(&source, PROGRAM).unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::write(root.join("etc/hosts"), HOSTS).unwrap();
    fs::write(root.join("etc/resolv.conf"), RESOLV_CONF).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut build = Command::new(rustc);
    build
        .args(super::flags().rust.split('\x1f'))
        .args(["--edition", "2024", "--target", super::TARGET, "-o"])
        .arg(root.join("resolve"))
        .arg(source);
    process::run(&mut build).unwrap();
    // Only root may listen on that port.
    let server = UdpSocket::bind((NAME_SERVER, 53)).ok();
    let names: &[&str] = match server {
        Some(_) => &["here.example", "cart", "cart.shop", SERVICE.0],
        None => &["here.example"],
    };
    if let Some(server) = server {
        thread::spawn(move || while answer(&server).is_some() {});
    }
    let resolved = process::output(enter(&root).arg("/resolve").args(names)).unwrap();
    let expected = names.iter().map(|name| match *name {
        "here.example" => format!("{name} [127.9.9.9]"),
        name => format!("{name} [10.1.2.3]"),
    });
    assert_eq!(
        resolved.lines().collect::<Vec<_>>(),
        expected.collect::<Vec<_>>()
    );
}

/// A command whose root is `folder`.
fn enter(folder: &Path) -> Command {
    let is_root = process::output(Command::new("id").arg("-u"))
        .unwrap()
        .trim()
        == "0";
    let mut command = Command::new(if is_root { "chroot" } else { "unshare" });
    if !is_root {
        command.args(["--map-root-user", "chroot"]);
    }
    command.arg(folder);
    command
}

/// Answers one question; `None` once there are no more.
fn answer(server: &UdpSocket) -> Option<()> {
    const HEAD: usize = 12;
    const ADDRESS: [u8; 4] = [0, 1, 0, 1];
    server.set_read_timeout(Some(Duration::from_mins(1))).ok()?;
    let mut question = [0; 512];
    let (size, client) = server.recv_from(&mut question).ok()?;
    let mut labels = Vec::new();
    let mut rest = question.get(HEAD..size)?;
    while let Some((&length, after)) = rest.split_first()
        && length > 0
    {
        let (label, after) = after.split_at_checked(length.into())?;
        labels.push(String::from_utf8_lossy(label));
        rest = after;
    }
    let is_known = labels.join(".") == SERVICE.0;
    let wanted = rest.get(1..5)?;
    let has_answer = is_known && wanted == ADDRESS;
    let end = size - rest.len() + 5;
    let mut reply = question[..end].to_vec();
    // A response without an error, or one that says that there is no such name.
    reply[2..4].copy_from_slice(if is_known {
        &[0x81, 0x80]
    } else {
        &[0x81, 0x83]
    });
    reply[6..HEAD].copy_from_slice(&[0, u8::from(has_answer), 0, 0, 0, 0]);
    if has_answer {
        // The name of the question, its type and class, five seconds, and the address.
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4]);
        reply.extend(SERVICE.1);
    }
    server.send_to(&reply, client).ok().map(drop)
}
