//! The messages of the served kinds, parsed from `data/protobuf.txt`.

use std::{collections::HashMap, sync::LazyLock};

static DESCRIPTORS: LazyLock<Descriptors> =
    LazyLock::new(|| Descriptors::parse(include_str!("../../../data/protobuf.txt")));

/// Delete options are sent under the version of the deleted object, so every version has this kind.
const DELETE_OPTIONS: &str = "meta.v1.DeleteOptions";

/// The message that the schema unions wrap.
const SCHEMA: &str = "apiextensions.v1.JSONSchemaProps";

/// All messages of the served kinds.
pub(super) fn descriptors() -> &'static Descriptors {
    &DESCRIPTORS
}

/// The index of a message in [`Descriptors`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessageId(usize);

/// The messages, and the index of kinds.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    messages: Vec<Vec<MessageField>>,
    names: HashMap<Box<str>, MessageId>,
    kinds: HashMap<Box<str>, MessageId>,
}

/// One field of a message.
#[derive(Debug)]
pub(super) struct MessageField {
    pub(super) number: u32,
    /// As in JSON; empty for an inlined struct.
    pub(super) name: Box<str>,
    pub(super) shape: Cardinality,
    pub(super) ty: FieldType,
    /// A zero value is shown.
    pub(super) keep: bool,
}

/// The cardinality of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cardinality {
    One,
    List,
    Map,
    /// Its fields belong to the enclosing message.
    Inline,
}

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldType {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    Bytes,
    Message(MessageId),
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    RawObject,
    RawJson,
    StringList,
    SchemaOrList,
    SchemaOrBool,
    SchemaOrStrings,
}

impl Descriptors {
    /// The message of a kind.
    pub(super) fn kind(&self, version: &str, kind: &str) -> Option<MessageId> {
        if kind == "DeleteOptions" {
            return self.named(DELETE_OPTIONS);
        }
        self.kinds
            .get(format!("{version} {kind}").as_str())
            .copied()
    }

    /// The field of a message with this number.
    pub(super) fn field(&self, message: MessageId, number: u32) -> Option<&MessageField> {
        let fields = self.messages.get(message.0)?;
        let index = fields.binary_search_by_key(&number, |field| field.number);
        index.ok().map(|index| &fields[index])
    }

    /// The message that the schema unions wrap.
    pub(super) fn schema(&self) -> Option<MessageId> {
        self.named(SCHEMA)
    }

    fn named(&self, name: &str) -> Option<MessageId> {
        self.names.get(name).copied()
    }

    /// The file is generated and committed; a test parses every line of it, so unreadable ones are
    /// skipped here.
    fn parse(text: &str) -> Self {
        let mut set = Self::default();
        let lines = || text.lines().filter(|line| !line.starts_with('#'));
        let messages: Vec<&str> = lines().filter(|line| !line.starts_with("kind ")).collect();
        for (index, line) in messages.iter().enumerate() {
            let name = line.split(' ').next().unwrap_or_default();
            set.names.insert(name.into(), MessageId(index));
        }
        for line in messages {
            let fields = line
                .split(' ')
                .skip(1)
                .filter_map(|word| set.read_field(word));
            let mut fields: Vec<MessageField> = fields.collect();
            fields.sort_by_key(|field| field.number);
            set.messages.push(fields);
        }
        for line in lines().filter_map(|line| line.strip_prefix("kind ")) {
            if let Some((kind, name)) = line.rsplit_once(' ')
                && let Some(id) = set.named(name)
            {
                set.kinds.insert(kind.into(), id);
            }
        }
        set
    }

    fn read_field(&self, word: &str) -> Option<MessageField> {
        let mut parts = word.splitn(3, ':');
        let number = parts.next()?.parse().ok()?;
        let name = parts.next()?.into();
        let marked = parts.next()?;
        let (shape, word) = match marked {
            _ if marked.starts_with("[]") => (Cardinality::List, &marked[2..]),
            _ if marked.starts_with("{}") => (Cardinality::Map, &marked[2..]),
            _ if marked.starts_with('^') => (Cardinality::Inline, &marked[1..]),
            _ => (Cardinality::One, marked.trim_start_matches('!')),
        };
        Some(MessageField {
            number,
            name,
            shape,
            ty: self.read_type(word)?,
            keep: marked.starts_with('!'),
        })
    }

    fn read_type(&self, word: &str) -> Option<FieldType> {
        Some(match word {
            "string" => FieldType::String,
            "bool" => FieldType::Bool,
            "int32" => FieldType::Int32,
            "int64" => FieldType::Int64,
            "double" => FieldType::Double,
            "bytes" => FieldType::Bytes,
            "time" => FieldType::Time,
            "micro-time" => FieldType::MicroTime,
            "quantity" => FieldType::Quantity,
            "int-or-string" => FieldType::IntOrString,
            "raw-object" => FieldType::RawObject,
            "raw-json" => FieldType::RawJson,
            "string-list" => FieldType::StringList,
            "schema-or-list" => FieldType::SchemaOrList,
            "schema-or-bool" => FieldType::SchemaOrBool,
            "schema-or-strings" => FieldType::SchemaOrStrings,
            name => FieldType::Message(self.named(name)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_and_every_field_is_read() {
        let text = include_str!("../../../data/protobuf.txt");
        let set = descriptors();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            if let ["kind", version, kind, name] = words[..] {
                assert_eq!(set.kind(version, kind), set.named(name), "{line}");
                assert!(set.named(name).is_some(), "{line}");
                continue;
            }
            let id = set.named(words[0]).unwrap();
            assert_eq!(set.messages[id.0].len(), words.len() - 1, "{}", words[0]);
        }
        assert!(set.schema().is_some());
    }

    #[test]
    fn marks_are_read() {
        let set = descriptors();
        let spec = set.named("apps.v1.DeploymentSpec").unwrap();
        let replicas = set.field(spec, 1).unwrap();
        assert_eq!((&*replicas.name, replicas.keep), ("replicas", true));
        let volume = set.named("core.v1.Volume").unwrap();
        assert_eq!(set.field(volume, 2).unwrap().shape, Cardinality::Inline);
        let secret = set.named("core.v1.Secret").unwrap();
        let data = set.field(secret, 2).unwrap();
        assert_eq!((data.shape, data.ty), (Cardinality::Map, FieldType::Bytes));
    }
}
