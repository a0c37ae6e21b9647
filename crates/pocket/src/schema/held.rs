//! How a real server holds the fields of a built-in type, which decides what becomes of a zero and
//! what a value of the wrong type is told. Read from `data/fields.txt`.

use std::{collections::HashMap, sync::LazyLock};

/// The fields of one type.
#[derive(Debug)]
pub struct Held {
    /// The type's name, such as `PodSpec`.
    pub name: &'static str,
    fields: HashMap<&'static str, Field>,
}

/// One field.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// What becomes of its zero.
    pub zero: Zero,
    /// The name of its type, such as `[]v1.Container`.
    pub ty: &'static str,
    /// The inner struct that it is really a field of, if there is one.
    pub inside: Option<&'static str>,
    /// Its place among the fields of the type.
    pub place: usize,
}

/// What becomes of the zero of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zero {
    /// It is left out, whatever it is.
    Gone,
    /// It is left out, unless it is a struct.
    Dropped,
    /// It is kept if it was set.
    Kept,
    /// It is there even if nobody set it.
    Written,
}

impl Held {
    /// A field of the type.
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.get(name).copied()
    }

    /// The fields that may be there even if nobody set them.
    pub fn written(&self) -> impl Iterator<Item = (&'static str, Field)> {
        let all = self.fields.iter().map(|(name, field)| (*name, *field));
        all.filter(|(_, field)| matches!(field.zero, Zero::Written | Zero::Dropped))
    }
}

static TYPES: LazyLock<HashMap<&'static str, Held>> = LazyLock::new(|| {
    let text = include_str!("../../data/fields.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(line).collect()
});

/// How a type is held, by the name of its definition.
pub(super) fn of(definition: &str) -> Option<&'static Held> {
    TYPES.get(definition)
}

fn line(line: &'static str) -> Option<(&'static str, Held)> {
    let mut words = line.split(' ');
    let definition = words.next()?;
    let name = definition.rsplit('.').next()?;
    let fields = words.enumerate().filter_map(field).collect();
    Some((definition, Held { name, fields }))
}

fn field((place, word): (usize, &'static str)) -> Option<(&'static str, Field)> {
    let (name, rest) = word.split_once(':')?;
    let (rest, inside) = match rest.split_once('^') {
        Some((rest, inside)) => (rest, Some(inside)),
        None => (rest, None),
    };
    let (zero, ty) = match rest.as_bytes().first()? {
        b'*' => (Zero::Kept, &rest[1..]),
        b'=' => (Zero::Written, &rest[1..]),
        b'~' => (Zero::Gone, &rest[1..]),
        _ => (Zero::Dropped, rest),
    };
    let field = Field {
        zero,
        ty,
        inside,
        place,
    };
    Some((name, field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read() {
        let volume = of("io.k8s.api.core.v1.Volume").unwrap();
        let secret = volume.field("secret").unwrap();
        assert_eq!(volume.name, "Volume");
        assert_eq!(secret.zero, Zero::Kept);
        assert_eq!(secret.ty, "v1.SecretVolumeSource");
        assert_eq!(secret.inside, Some("VolumeSource"));
        assert_eq!(volume.field("name").unwrap().zero, Zero::Written);
        let meta = of("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap();
        assert_eq!(meta.field("creationTimestamp").unwrap().zero, Zero::Gone);
    }
}
