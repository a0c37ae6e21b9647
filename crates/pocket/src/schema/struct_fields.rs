//! How kube-apiserver holds the fields of a built-in type, which decides whether a zero is stored
//! and which error a wrong type gets. Parsed from `data/fields.txt`.

use std::{collections::HashMap, sync::LazyLock};

/// The fields of one type.
#[derive(Debug)]
pub struct StructFields {
    /// The type's name, such as `PodSpec`.
    pub name: &'static str,
    fields: HashMap<&'static str, StructField>,
}

#[derive(Debug, Clone, Copy)]
pub struct StructField {
    /// How its zero value is stored.
    pub zero: Zero,
    /// The name of its type, such as `[]v1.Container`.
    pub ty: &'static str,
    /// The embedded struct that declares it, if there is one.
    pub inside: Option<&'static str>,
    /// Its position among the fields of the type.
    pub place: usize,
}

/// How the zero value of a field is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zero {
    /// It is left out, whatever it is.
    Gone,
    /// It is left out, unless it is a struct.
    Dropped,
    /// It is kept if it was set.
    Kept,
    /// It is present even if it was not set.
    Written,
}

impl StructFields {
    /// A field of the type.
    pub fn field(&self, name: &str) -> Option<StructField> {
        self.fields.get(name).copied()
    }

    /// The fields that may be present even if they were not set.
    pub fn written(&self) -> impl Iterator<Item = (&'static str, StructField)> {
        let all = self.fields.iter().map(|(name, field)| (*name, *field));
        all.filter(|(_, field)| matches!(field.zero, Zero::Written | Zero::Dropped))
    }
}

static TYPES: LazyLock<HashMap<&'static str, StructFields>> = LazyLock::new(|| {
    let text = include_str!("../../data/fields.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(line).collect()
});

/// The fields of a type, by the name of its definition.
pub(super) fn of(definition: &str) -> Option<&'static StructFields> {
    TYPES.get(definition)
}

fn line(line: &'static str) -> Option<(&'static str, StructFields)> {
    let mut words = line.split(' ');
    let definition = words.next()?;
    let name = definition.rsplit('.').next()?;
    let fields = words.enumerate().filter_map(field).collect();
    Some((definition, StructFields { name, fields }))
}

fn field((place, word): (usize, &'static str)) -> Option<(&'static str, StructField)> {
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
    let field = StructField {
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
