//! Texts that very many objects have in common: each is in memory once.

use std::{
    collections::HashSet,
    fmt,
    ops::Deref,
    sync::{Arc, LazyLock},
};

use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, de::Visitor};

/// The texts in use, and some that no object has any more.
static TEXTS: LazyLock<Mutex<Texts>> = LazyLock::new(Mutex::default);
/// The texts that are there before unused ones are looked for.
const FIRST_SWEEP: usize = 1024;

/// A text that is kept once, however many objects have it. It is dropped some time after the last of them.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct SharedText(Arc<str>);

#[derive(Default)]
struct Texts {
    all: HashSet<Arc<str>>,
    /// The number of texts at which unused ones are dropped: twice as many as were in use the last time, so that
    /// the look costs little in relation to what was added.
    sweep_at: usize,
}

impl Texts {
    fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.all.get(text) {
            return known.clone();
        }
        if self.all.len() >= self.sweep_at.max(FIRST_SWEEP) {
            self.all.retain(|text| Arc::strong_count(text) > 1);
            self.sweep_at = 2 * self.all.len();
        }
        let text: Arc<str> = text.into();
        self.all.insert(text.clone());
        text
    }
}

impl From<&str> for SharedText {
    fn from(text: &str) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        Self(TEXTS.lock().get(text))
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<'de> Deserialize<'de> for SharedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl Visitor<'_> for TextVisitor {
            type Value = SharedText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E>(self, text: &str) -> Result<SharedText, E> {
                Ok(text.into())
            }
        }

        deserializer.deserialize_str(TextVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one() {
        let one: SharedText = serde_json::from_str("\"a text that only this test has\"").unwrap();
        let other = SharedText::from("a text that only this test has");
        assert!(Arc::ptr_eq(&one.0, &other.0));
        assert_eq!(&*one, "a text that only this test has");
    }

    #[test]
    fn texts_that_no_object_has_any_more_are_dropped() {
        let mut texts = Texts::default();
        let kept: Vec<_> = (0..10).map(|it| texts.get(&format!("kept {it}"))).collect();
        for number in 0..100 * FIRST_SWEEP {
            texts.get(&number.to_string());
        }
        assert!(texts.all.len() <= FIRST_SWEEP, "{}", texts.all.len());
        for text in &kept {
            assert!(Arc::ptr_eq(&texts.get(text), text), "it is in use");
        }
    }
}
