//! The names of images: their syntax, and whether they can change their meaning.

/// Whether an image must be pulled each time: its name has no fixed tag or digest. An invalid name
/// is left to the container runtime.
pub(super) fn may_change(image: &str) -> bool {
    let Some((tag, digest)) = parse(image) else {
        return false;
    };
    match tag {
        Some(tag) => tag == "latest",
        None => !digest,
    }
}

/// The tag of an image and whether it has a digest, if the name is valid.
fn parse(image: &str) -> Option<(Option<&str>, bool)> {
    let hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    if image.len() == 64 && image.bytes().all(hex) {
        return None;
    }
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return None;
    }
    let (domain, rest) = split_domain(name);
    let (path, tag) = match rest.rsplit_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (rest, None),
    };
    let good = domain.is_none_or(is_domain)
        && path.split('/').all(is_component)
        && tag.is_none_or(is_tag)
        && path.len() + domain.map_or("docker.io/library".len(), str::len) < 255;
    good.then_some((tag, digest.is_some()))
}

/// The part before the first slash is a host if it looks like one.
fn split_domain(name: &str) -> (Option<&str>, &str) {
    match name.split_once('/') {
        Some((first, rest))
            if first.contains(['.', ':'])
                || first == "localhost"
                || first.bytes().any(|c| c.is_ascii_uppercase()) =>
        {
            (Some(first), rest)
        }
        _ => (None, name),
    }
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (domain, None),
    };
    let label = |label: &str| {
        label
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || c == b'-')
            && !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let digits = |port: &str| !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit());
    host.split('.').all(label) && port.is_none_or(digits)
}

/// Letters and digits with one dot, one or two underscores, or dashes between them.
fn is_component(component: &str) -> bool {
    let alone = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut between = component.split(alone).filter(|part| !part.is_empty());
    component.starts_with(alone)
        && component.ends_with(alone)
        && between.all(|part| matches!(part, "." | "_" | "__") || part.bytes().all(|c| c == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let word = |c: u8| c.is_ascii_alphanumeric() || c == b'_';
    let inner = |c: u8| word(c) || matches!(c, b'.' | b'-');
    tag.len() <= 128 && tag.bytes().next().is_some_and(word) && tag.bytes().all(inner)
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else {
        return false;
    };
    let long = match algorithm {
        "sha256" => hex.len() == 64,
        "sha384" => hex.len() == 96,
        "sha512" => hex.len() == 128,
        _ => hex.len() >= 32,
    };
    algorithm.starts_with(|c: char| c.is_ascii_alphabetic())
        && long
        && hex.bytes().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_lasting_name_may_change() {
        for image in [
            "a",
            "a:latest",
            "x:5000/a",
            "UP/a",
            "a__b",
            "localhost/a",
            "a/b/c",
            "1",
            "a_b",
            "a.b",
        ] {
            assert!(may_change(image), "{image}");
        }
        let pinned = format!("a:latest@sha256:{}", "0".repeat(64));
        assert!(may_change(&pinned));
        assert!(!may_change(&pinned.replace(":latest", "")));
    }

    #[test]
    fn what_is_no_name_is_not_pulled_again() {
        for image in [
            "*",
            "A",
            "a@sha256:00",
            "a/b:v1",
            "a:",
            "a..b",
            "é",
            "-x",
            "x-",
            "..",
            "a.b.",
            "x:latest:latest",
            "",
            " a",
        ] {
            assert!(!may_change(image), "{image}");
        }
        assert!(!may_change(&"b".repeat(300)));
    }
}
