//! Tags, with the limits of Azure Resource Manager.

use serde_json::Value;

use super::{Checked, Input};
use crate::cloud_error::CloudError;

/// The number of tags of a resource.
const MAX_TAGS: usize = 50;
/// The length of a key, in characters.
const MAX_KEY: usize = 512;
/// The length of a value, in characters.
const MAX_VALUE: usize = 256;
/// Characters that no key has.
const EXCLUDED: &str = "<>%&\\?/";
/// The length of a key in a message.
const MAX_SHOWN: usize = 64;

pub(super) fn tags(input: &Input<'_>) -> Checked {
    let tags = &input.cluster["tags"];
    // A cluster from before the limits keeps what it has.
    if input
        .current
        .is_some_and(|current| current["tags"] == *tags)
    {
        return Ok(());
    }
    let Some(tags) = tags.as_object() else {
        return Ok(());
    };
    if tags.len() > MAX_TAGS {
        let message = format!(
            "The resource has {} tags, and at most {MAX_TAGS} are possible.",
            tags.len()
        );
        return Err(CloudError::invalid("tags", message));
    }
    tags.iter().try_for_each(|(key, value)| tag(key, value))
}

fn tag(key: &str, value: &Value) -> Checked {
    let is_excluded = |it: char| it.is_control() || EXCLUDED.contains(it);
    let problem = if key.is_empty() {
        "has no name".to_owned()
    } else if key.chars().count() > MAX_KEY {
        format!("has a name of more than {MAX_KEY} characters")
    } else if key.contains(is_excluded) {
        format!("has a control character or one of {EXCLUDED} in its name")
    } else if value.as_str().unwrap_or_default().chars().count() > MAX_VALUE {
        format!("has a value of more than {MAX_VALUE} characters")
    } else {
        return Ok(());
    };
    let shown: String = key.chars().take(MAX_SHOWN).collect();
    let target = format!("tags.{shown}");
    let message = format!("The tag {shown:?} {problem}.");
    Err(CloudError::invalid(&target, message))
}
