use super::*;
use crate::{image_stream::api::ImportMode, oci::digest::sha256};

fn wanted() -> TagImport {
    TagImport {
        tag: "cli".to_owned(),
        image: "reg.example/ocp/cli:v1".parse().unwrap(),
        mode: ImportMode::Legacy,
        insecure: false,
        generation: 2,
        known: None,
        scheduled: false,
    }
}

fn at(minutes: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + minutes * 60).unwrap()
}

fn failure(transient: bool) -> ImportFailure {
    ImportFailure {
        reason: "NotFound",
        message: "there is no such image".to_owned(),
        retry_after: None,
        transient,
    }
}

#[test]
fn an_image_is_recorded_once_and_the_history_is_bounded() {
    let mut status = ImageStreamStatus::default();
    let settings = Settings {
        history: 3,
        ..Settings::default()
    };
    for number in 0..6_u8 {
        for again in 0..2 {
            let digest = sha256(&[number]);
            record(
                &mut status,
                &wanted(),
                Ok(&digest),
                &settings,
                at(i64::from(number) * 10 + again),
            );
        }
    }
    let tag = status.tag("cli").unwrap();
    let images: Vec<_> = tag.items.iter().map(|item| item.image.clone()).collect();
    assert_eq!(
        images,
        [5, 4, 3].map(|number: u8| sha256(&[number]).to_string())
    );
    assert_eq!(
        tag.items[0].docker_image_reference,
        format!("reg.example/ocp/cli@{}", sha256(&[5]))
    );
    assert_eq!(
        tag.items[0].created,
        at(50),
        "when it began to stand for it"
    );
    let condition = tag.import_condition().unwrap();
    assert_eq!(
        (condition.status.as_str(), condition.last_transition_time),
        ("True", Some(at(0)))
    );
}

#[test]
fn failures_keep_the_image_and_are_repeated_less_and_less_often() {
    let mut status = ImageStreamStatus::default();
    let settings = Settings::default();
    record(&mut status, &wanted(), Ok(&sha256(b"1")), &settings, at(0));
    let mut waits = Vec::new();
    for _ in 0..8 {
        record(
            &mut status,
            &wanted(),
            Err(&failure(true)),
            &settings,
            at(5),
        );
        let import = status.tag("cli").unwrap().import.clone().unwrap();
        let wait = import
            .next_attempt
            .unwrap()
            .duration_since(import.attempted_at);
        waits.push(wait.as_secs() / 60);
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    let tag = status.tag("cli").unwrap();
    assert_eq!(tag.items.len(), 1);
    assert!(tag.import_failed());
    assert_eq!(
        tag.import_condition().unwrap().last_transition_time,
        Some(at(5))
    );
    record(&mut status, &wanted(), Ok(&sha256(b"1")), &settings, at(9));
    assert_eq!(
        status.tag("cli").unwrap().import.clone().unwrap().failures,
        0
    );
}

#[test]
fn what_does_not_exist_is_asked_for_less_often_than_what_failed() {
    let mut status = ImageStreamStatus::default();
    record(
        &mut status,
        &wanted(),
        Err(&failure(false)),
        &Settings::default(),
        at(0),
    );
    let import = status.tag("cli").unwrap().import.clone().unwrap();
    assert_eq!(import.next_attempt, Some(at(10)));
}

#[test]
fn the_summary_shows_the_newest_tag_and_the_shared_repository() {
    let mut status = ImageStreamStatus::default();
    let settings = Settings::default();
    record(&mut status, &wanted(), Ok(&sha256(b"1")), &settings, at(0));
    let other = TagImport {
        tag: "v2".to_owned(),
        ..wanted()
    };
    record(&mut status, &other, Ok(&sha256(b"2")), &settings, at(7));
    complete(&mut status, &ImageStreamSpec::default());
    let summary = status.summary.clone().unwrap();
    assert_eq!(
        (summary.newest_tag.as_str(), summary.last_update),
        ("v2", Some(at(7)))
    );
    assert_eq!(
        (summary.repository.as_str(), summary.tags),
        ("reg.example/ocp/cli", 2)
    );
}

#[test]
fn a_large_stream_loses_its_oldest_images_and_keeps_the_newest_of_each_tag() {
    let item = |tag: i64, back: i64| {
        let digest = sha256(format!("{tag} {back}").as_bytes());
        let image = wanted().image;
        TagEvent {
            created: at(100_000 - back * 1000 + tag),
            docker_image_reference: image.at_digest(&digest).to_string(),
            image: digest.to_string(),
            generation: 3,
        }
    };
    let tags = (0..300).map(|tag| NamedTagEventList {
        tag: format!("component-{tag}"),
        items: (0..20).map(|back| item(tag, back)).collect(),
        ..NamedTagEventList::default()
    });
    let mut status = ImageStreamStatus {
        tags: tags.collect(),
        ..ImageStreamStatus::default()
    };
    let bytes = |status: &ImageStreamStatus| serde_json::to_vec(status).unwrap().len();
    let before = status.clone();
    assert!(bytes(&before) > 5 << 18, "much more than is kept");
    complete(&mut status, &ImageStreamSpec::default());
    let after = bytes(&status);
    assert!((900 << 10..1100 << 10).contains(&after), "{after} bytes");
    let images = |status: &ImageStreamStatus| -> Vec<TagEvent> {
        let tags = status.tags.iter();
        tags.flat_map(|tag| tag.items.clone()).collect()
    };
    let kept = images(&status);
    let oldest = kept.iter().map(|item| item.created).min().unwrap();
    let younger = images(&before).into_iter();
    let younger: Vec<_> = younger.filter(|item| item.created >= oldest).collect();
    assert_eq!(kept, younger, "only the oldest are gone");
    assert!(status.tags.iter().all(|tag| !tag.items.is_empty()));

    let mut alone = before.clone();
    for tag in &mut alone.tags {
        tag.items.truncate(1);
        tag.items[0].docker_image_reference = "x".repeat(8 << 10);
    }
    let newest = alone.tags.clone();
    complete(&mut alone, &ImageStreamSpec::default());
    assert_eq!(alone.tags, newest, "the newest image of a tag stays");
}
