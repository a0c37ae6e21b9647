//! `neap explain`: what a code means, and why an object is as it is.

mod code;
mod object;
mod resource;
mod sleeper;

use std::io::Write;

use self::object::Wanted;
pub(super) use self::{
    object::readable,
    sleeper::{accounted, judged},
};
use super::block_on;
use crate::{
    cli::ExplainOptions,
    exit::{Exit, Failure},
};

/// Explains what was asked for.
pub(super) fn run(options: &ExplainOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let Some(what) = options.what.as_deref() else {
        return code::list(options.output, out);
    };
    match question(what, options.name.as_deref()) {
        Some(Question::Code(text)) => code::explain(text, options.output, out),
        Some(Question::Object(wanted)) => block_on(object::explain(&wanted, options, out)),
        None => Err(unclear(what)),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Question<'a> {
    Code(&'a str),
    Object(Wanted<'a>),
}

/// What the words ask for; nothing if they do not say.
fn question<'a>(what: &'a str, name: Option<&'a str>) -> Option<Question<'a>> {
    let object = |kind, name: &'a str| {
        let wanted = Wanted { kind, name };
        let complete = !wanted.kind.is_empty() && !name.is_empty() && !name.contains('/');
        complete.then_some(Question::Object(wanted))
    };
    match (what.split_once('/'), name) {
        (None, Some(name)) => object(what, name),
        (Some((kind, name)), None) => object(kind, name),
        (Some(_), Some(_)) => None,
        (None, None) => {
            let is_code = code::is_one(what);
            is_code.then_some(Question::Code(what))
        }
    }
}

fn unclear(what: &str) -> Failure {
    let why = format!("{what:?} is no code, and names no object");
    Failure::new("NT-CLI-0009", Exit::Usage, "nothing to explain", &why)
        .remedy("neap explain NT-UP-0001, or neap explain KIND/NAME, or neap explain KIND NAME; neap explain alone lists all codes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_ask_for_a_code_or_an_object() {
        let object = |kind, name| Some(Question::Object(Wanted { kind, name }));
        for (what, name, question) in [
            ("NT-UP-0010", None, Some(Question::Code("NT-UP-0010"))),
            ("nt-up-10", None, Some(Question::Code("nt-up-10"))),
            ("UP-0010", None, Some(Question::Code("UP-0010"))),
            ("pod/web-0", None, object("pod", "web-0")),
            ("pod", Some("web-0"), object("pod", "web-0")),
            ("pod/", None, None),
            ("/web", None, None),
            ("pod", None, None),
            ("pod/web", Some("web"), None),
            ("a/b/c", None, None),
        ] {
            assert_eq!(super::question(what, name), question, "{what} {name:?}");
        }
    }
}
