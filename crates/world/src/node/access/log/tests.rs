use std::{fs, io::Write};

use tempfile::TempDir;

use super::*;

fn log(earlier: &str, current: &str) -> (TempDir, ContainerLog) {
    let folder = tempfile::tempdir().unwrap();
    let log = ContainerLog::of(folder.path());
    if !earlier.is_empty() {
        fs::write(log.earlier(), earlier).unwrap();
    }
    fs::write(log.current(), current).unwrap();
    (folder, log)
}

async fn all(log: &ContainerLog, options: LogOptions) -> String {
    let pieces: Vec<Bytes> = read(log, &options, None).unwrap().collect().await;
    String::from_utf8(pieces.concat()).unwrap()
}

const EARLIER: &str = "2026-01-01T00:00:01Z stdout F one\n2026-01-01T00:00:02Z stderr F two\n";
const CURRENT: &str = "2026-01-01T00:00:03Z stdout P thr\n2026-01-01T00:00:03.5Z stdout F ee\n2026-01-01T00:00:04Z stdout P fo";

#[tokio::test]
async fn a_log_is_filtered_by_its_options() {
    let (_folder, log) = log(EARLIER, &format!("{CURRENT}\n"));
    let options = LogOptions::default;
    assert_eq!(all(&log, options()).await, "one\ntwo\nthree\nfo");
    let tail = |tail| LogOptions {
        tail: Some(tail),
        ..options()
    };
    for (lines, shown) in [
        (0, ""),
        (1, "fo"),
        (2, "three\nfo"),
        (9, "one\ntwo\nthree\nfo"),
    ] {
        assert_eq!(all(&log, tail(lines)).await, shown, "{lines} lines");
    }
    let since = LogOptions {
        since: "2026-01-01T00:00:02Z".parse().ok(),
        timestamps: true,
        tail: Some(2),
        ..options()
    };
    let expected = "2026-01-01T00:00:03Z three\n2026-01-01T00:00:04Z fo";
    assert_eq!(all(&log, since).await, expected);
    let limit = LogOptions {
        limit: Some(5),
        ..options()
    };
    assert_eq!(all(&log, limit).await, "one\nt");
}

#[tokio::test]
async fn a_follower_sees_lines_across_files_and_ends_with_the_process() {
    let (_folder, log) = log("", "T stdout F one\nT stdout F tw");
    let (prints, printed) = watch::channel(0);
    let follow = LogOptions {
        follow: true,
        ..LogOptions::default()
    };
    let mut lines = read(&log, &follow, Some(printed)).unwrap();
    assert_eq!(lines.next().await.unwrap(), "one\n");
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(log.current())
        .unwrap();
    file.write_all(b"o\n").unwrap();
    fs::rename(log.current(), log.earlier()).unwrap();
    fs::write(log.current(), "T stdout F three\n").unwrap();
    prints.send_modify(|count| *count += 1);
    assert_eq!(lines.next().await.unwrap(), "two\n");
    assert_eq!(lines.next().await.unwrap(), "three\n");
    // Another process of the container starts another log.
    fs::rename(log.current(), log.previous().current()).unwrap();
    fs::write(log.current(), "T stdout F of another\n").unwrap();
    drop(prints);
    assert_eq!(lines.next().await, None);
}

#[tokio::test]
async fn a_follower_survives_two_rotations_between_two_reads() {
    let (_folder, log) = log("", "T stdout F one\n");
    let (prints, printed) = watch::channel(0);
    let follow = LogOptions {
        follow: true,
        ..LogOptions::default()
    };
    let mut lines = read(&log, &follow, Some(printed)).unwrap();
    assert_eq!(lines.next().await.unwrap(), "one\n");
    for text in ["lost", "two", "three"] {
        fs::rename(log.current(), log.earlier()).unwrap();
        fs::write(log.current(), format!("T stdout F {text}\n")).unwrap();
    }
    prints.send_modify(|count| *count += 1);
    assert_eq!(lines.next().await.unwrap(), "two\n");
    assert_eq!(lines.next().await.unwrap(), "three\n");
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(log.current())
        .unwrap();
    file.write_all(b"T stdout F four\n").unwrap();
    prints.send_modify(|count| *count += 1);
    assert_eq!(lines.next().await.unwrap(), "four\n");
    drop(prints);
    // The output of another process is not followed, however often its log is rotated.
    for _ in 0..3 {
        fs::rename(log.current(), log.earlier()).unwrap();
        fs::write(log.current(), "T stdout F of another\n").unwrap();
    }
    assert_eq!(lines.next().await, None);
}
