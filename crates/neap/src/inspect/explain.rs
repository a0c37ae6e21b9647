//! `neap explain`: the meaning of an error code, or the state of an object and its causes.

mod code;
mod object;
mod resource;

use std::io::Write;

use self::object::ObjectRef;
pub(super) use self::object::decode_valid;
use super::block_on;
use crate::{
    cli::ExplainOptions,
    exit::{Exit, Failure},
};

/// Explains an error code or an object.
pub(super) fn run(options: &ExplainOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let Some(what) = options.what.as_deref() else {
        return code::list(options.output, out);
    };
    match parse_target(what, options.name.as_deref()) {
        Some(ExplainTarget::Code(text)) => code::explain(text, options.output, out),
        Some(ExplainTarget::Object(object_ref)) => {
            block_on(object::explain(&object_ref, options, out))
        }
        None => Err(unrecognized(what)),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum ExplainTarget<'a> {
    Code(&'a str),
    Object(ObjectRef<'a>),
}

/// Parses the arguments; `None` if they name neither a code nor an object.
fn parse_target<'a>(what: &'a str, name: Option<&'a str>) -> Option<ExplainTarget<'a>> {
    let object = |kind, name: &'a str| {
        let object_ref = ObjectRef { kind, name };
        let complete = !object_ref.kind.is_empty() && !name.is_empty() && !name.contains('/');
        complete.then_some(ExplainTarget::Object(object_ref))
    };
    match (what.split_once('/'), name) {
        (None, Some(name)) => object(what, name),
        (Some((kind, name)), None) => object(kind, name),
        (Some(_), Some(_)) => None,
        (None, None) => {
            let is_code = code::is_code_like(what);
            is_code.then_some(ExplainTarget::Code(what))
        }
    }
}

fn unrecognized(what: &str) -> Failure {
    let why = format!("{what:?} is neither an error code nor an object");
    Failure::new("NT-CLI-0009", Exit::Usage, "nothing to explain", &why)
        .remedy("neap explain NT-UP-0001, neap explain KIND/NAME or neap explain KIND NAME; neap explain lists all codes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_a_code_or_an_object() {
        let object = |kind, name| Some(ExplainTarget::Object(ObjectRef { kind, name }));
        for (what, name, parse_target) in [
            ("NT-UP-0010", None, Some(ExplainTarget::Code("NT-UP-0010"))),
            ("nt-up-10", None, Some(ExplainTarget::Code("nt-up-10"))),
            ("UP-0010", None, Some(ExplainTarget::Code("UP-0010"))),
            ("pod/web-0", None, object("pod", "web-0")),
            ("pod", Some("web-0"), object("pod", "web-0")),
            ("pod/", None, None),
            ("/web", None, None),
            ("pod", None, None),
            ("pod/web", Some("web"), None),
            ("a/b/c", None, None),
        ] {
            assert_eq!(
                super::parse_target(what, name),
                parse_target,
                "{what} {name:?}"
            );
        }
    }
}
