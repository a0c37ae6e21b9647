//! What the errors of the evaluator say to the author of a file. The crate has no texts for them.

use std::collections::BTreeSet;

use rsjsonnet_lang::{
    ast::{BinaryOp, UnaryOp},
    lexer::LexError,
    parser::{ActualToken, ExpectedToken, ParseError},
    program::{AnalyzeError, EvalErrorKind, EvalErrorValueType, LoadError},
    span::SpanId,
};

/// The number of tokens up to which a message lists what may come instead.
const MAX_EXPECTED: usize = 4;

/// Why an evaluation failed.
pub(super) fn of_evaluation(kind: &EvalErrorKind) -> String {
    use EvalErrorKind as Kind;
    match kind {
        Kind::ExplicitError { message, .. } => format!("it ends with an error: {message}"),
        Kind::AssertFailed { message, .. } => match message {
            Some(message) => format!("an assertion fails: {message}"),
            None => "an assertion fails".to_owned(),
        },
        Kind::AssertEqualFailed { lhs, rhs } => {
            format!("std.assertEqual fails: {lhs} is not equal to {rhs}")
        }
        Kind::Other { message, .. } => message.clone(),
        Kind::StackOverflow => "stack overflow: its calls nest too deep".to_owned(),
        Kind::InfiniteRecursion => "a value depends on itself".to_owned(),
        Kind::DivByZero { .. } => "it divides by zero".to_owned(),
        Kind::NumberOverflow { .. } => "a number is too large".to_owned(),
        Kind::NumberNan { .. } => "the result of a calculation is not a number".to_owned(),
        Kind::ManifestFunction => {
            "its value contains a function, which JSON cannot have".to_owned()
        }
        Kind::UnknownExtVar { name } => format!("there is no external variable {name:?}"),
        Kind::ImportFailed { path, .. } => format!("it imports {path:?}, which cannot be read"),
        Kind::UnknownObjectField { field_name, .. } => {
            format!("an object has no field {field_name:?}")
        }
        Kind::RepeatedFieldName { name, .. } => format!("the field {name:?} occurs twice"),
        Kind::InvalidStdFuncArgType {
            func_name,
            arg_index,
            expected_types,
            got_type,
        } => {
            let expected: Vec<_> = expected_types.iter().map(|it| a(*it)).collect();
            let (number, expected) = (arg_index + 1, expected.join(" or "));
            let got = a(*got_type);
            format!("argument {number} of std.{func_name} is {got}, not {expected}")
        }
        _ => of_types(kind).unwrap_or_else(|| words(&format!("{kind:?}"))),
    }
}

/// Why an evaluation failed at a value of the wrong type, or at a call.
fn of_types(kind: &EvalErrorKind) -> Option<String> {
    use EvalErrorKind as Kind;
    Some(match kind {
        Kind::InvalidIndexedType { got_type, .. } => {
            format!("{} has neither fields nor elements", a(*got_type))
        }
        Kind::NumericIndexOutOfRange { index, length, .. } => {
            format!("the index {index} is out of range: there are {length} elements")
        }
        Kind::FieldNameIsNotString { got_type, .. } => {
            format!("the name of a field is {}, not a string", a(*got_type))
        }
        Kind::ForSpecValueIsNotArray { got_type, .. } => {
            format!("`for` goes over {}, not an array", a(*got_type))
        }
        Kind::CondIsNotBool { got_type, .. } => {
            format!("a condition is {}, not a boolean", a(*got_type))
        }
        Kind::CalleeIsNotFunction { got_type, .. } => {
            format!("it calls {}, not a function", a(*got_type))
        }
        Kind::TooManyCallArgs { num_params, .. } => {
            format!("a function with {num_params} parameters is called with more arguments")
        }
        Kind::UnknownCallParam { param_name, .. } => {
            format!("the called function has no parameter {param_name:?}")
        }
        Kind::RepeatedCallParam { param_name, .. } => {
            format!("a call sets the parameter {param_name:?} twice")
        }
        Kind::CallParamNotBound { param_name, .. } => {
            format!("a call does not set the parameter {param_name:?}")
        }
        Kind::InvalidUnaryOpType { op, rhs_type, .. } => {
            format!("the operator {} does not take {}", unary(*op), a(*rhs_type))
        }
        Kind::InvalidBinaryOpTypes {
            op,
            lhs_type,
            rhs_type,
            ..
        } => format!(
            "the operator {} does not take {} and {}",
            binary(*op),
            a(*lhs_type),
            a(*rhs_type)
        ),
        _ => return None,
    })
}

fn a(value: EvalErrorValueType) -> String {
    match value {
        EvalErrorValueType::Null => "null".to_owned(),
        EvalErrorValueType::Bool => "a boolean".to_owned(),
        EvalErrorValueType::Array => "an array".to_owned(),
        EvalErrorValueType::Object => "an object".to_owned(),
        other => format!("a {}", words(&format!("{other:?}"))),
    }
}

const fn unary(operator: UnaryOp) -> &'static str {
    match operator {
        UnaryOp::Minus => "-",
        UnaryOp::Plus => "+",
        UnaryOp::BitwiseNot => "~",
        UnaryOp::LogicNot => "!",
    }
}

const fn binary(operator: BinaryOp) -> &'static str {
    match operator {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Rem => "%",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::In => "in",
        BinaryOp::BitwiseAnd => "&",
        BinaryOp::BitwiseOr => "|",
        BinaryOp::BitwiseXor => "^",
        BinaryOp::LogicAnd => "&&",
        BinaryOp::LogicOr => "||",
    }
}

/// Why a file is no valid Jsonnet, and the part of it that the message is about.
pub(super) fn of_load(error: &LoadError) -> (SpanId, String) {
    match error {
        LoadError::Lex(error) => lexical(error),
        LoadError::Parse(ParseError::Expected {
            span,
            expected,
            instead,
        }) => (*span, unexpected(expected, instead)),
        LoadError::Analyze(error) => analysis(error),
    }
}

fn unexpected(expected: &BTreeSet<ExpectedToken>, instead: &ActualToken) -> String {
    let found = match instead {
        ActualToken::EndOfFile => "the file ends".to_owned(),
        ActualToken::Simple(kind) => format!("there is {}", token(&format!("{kind:?}"))),
        ActualToken::OtherOp(text) | ActualToken::Ident(text) => format!("there is {text:?}"),
        ActualToken::Number => "there is a number".to_owned(),
        ActualToken::String => "there is a string".to_owned(),
        ActualToken::TextBlock => "there is a text block".to_owned(),
    };
    if expected.len() > MAX_EXPECTED {
        return format!("{found} where it may not");
    }
    let names = expected.iter().map(|it| match it {
        ExpectedToken::EndOfFile => "the end of the file".to_owned(),
        ExpectedToken::Simple(kind) => token(&format!("{kind:?}")),
        ExpectedToken::Ident => "a name".to_owned(),
        ExpectedToken::Number => "a number".to_owned(),
        ExpectedToken::String => "a string".to_owned(),
        ExpectedToken::TextBlock => "a text block".to_owned(),
        ExpectedToken::Expr => "a value".to_owned(),
        ExpectedToken::BinaryOp => "an operator".to_owned(),
    });
    let names: Vec<_> = names.collect();
    format!("{found} instead of {}", names.join(" or "))
}

/// The token of a name such as `RightBrace`; a keyword is its name in lower case.
fn token(name: &str) -> String {
    let text = match name {
        "LeftBrace" => "{",
        "RightBrace" => "}",
        "LeftBracket" => "[",
        "RightBracket" => "]",
        "LeftParen" => "(",
        "RightParen" => ")",
        "Comma" => ",",
        "Semicolon" => ";",
        "Colon" => ":",
        "ColonColon" => "::",
        "ColonColonColon" => ":::",
        "PlusColon" => "+:",
        "Dot" => ".",
        "Eq" => "=",
        "Dollar" => "$",
        "Plus" => "+",
        "Minus" => "-",
        "Asterisk" => "*",
        "Slash" => "/",
        "Percent" => "%",
        other => return format!("`{}`", words(other)),
    };
    format!("`{text}`")
}

fn lexical(error: &LexError) -> (SpanId, String) {
    use LexError as Error;
    let text = match error {
        Error::InvalidChar { chr, .. } => format!("the character {chr:?} is not allowed here"),
        Error::InvalidEscapeInString { chr, .. } => {
            format!("a string has the unknown escape sequence \\{chr}")
        }
        Error::UnfinishedString { .. } => "a string has no end".to_owned(),
        Error::UnfinishedMultilineComment { .. } => "a comment has no end".to_owned(),
        other => words(&format!("{other:?}")),
    };
    let (Error::InvalidChar { span, .. }
    | Error::InvalidUtf8 { span, .. }
    | Error::UnfinishedMultilineComment { span }
    | Error::LeadingZeroInNumber { span }
    | Error::MissingFracDigits { span }
    | Error::MissingExpDigits { span }
    | Error::MissingDigitAfterUnderscore { span }
    | Error::ExpOverflow { span }
    | Error::InvalidEscapeInString { span, .. }
    | Error::IncompleteUnicodeEscape { span }
    | Error::InvalidUtf16EscapeSequence { span, .. }
    | Error::UnfinishedString { span }
    | Error::MissingLineBreakAfterTextBlockStart { span }
    | Error::MissingWhitespaceTextBlockStart { span }
    | Error::InvalidTextBlockTermination { span }) = error;
    (*span, text)
}

fn analysis(error: &AnalyzeError) -> (SpanId, String) {
    use AnalyzeError as Error;
    match error {
        Error::UnknownVariable { span, name } => (*span, format!("there is no variable {name:?}")),
        Error::SelfOutsideObject { self_span } => {
            (*self_span, "`self` is outside of an object".to_owned())
        }
        Error::SuperOutsideObject { super_span } => {
            (*super_span, "`super` is outside of an object".to_owned())
        }
        Error::DollarOutsideObject { dollar_span } => {
            (*dollar_span, "`$` is outside of an object".to_owned())
        }
        Error::RepeatedLocalName {
            repeated_span,
            name,
            ..
        } => (
            *repeated_span,
            format!("the variable {name:?} occurs twice"),
        ),
        Error::RepeatedFieldName {
            repeated_span,
            name,
            ..
        } => (*repeated_span, format!("the field {name:?} occurs twice")),
        Error::RepeatedParamName {
            repeated_span,
            name,
            ..
        } => (
            *repeated_span,
            format!("the parameter {name:?} occurs twice"),
        ),
        Error::PositionalArgAfterNamed { arg_span } => (
            *arg_span,
            "an argument without a name follows one with a name".to_owned(),
        ),
        Error::TextBlockAsImportPath { span } | Error::ComputedImportPath { span } => (
            *span,
            "the path of an import has to be a plain string".to_owned(),
        ),
    }
}

/// The name of a variant in words, without its fields: `ShiftByNegative { .. }` is "shift by negative".
fn words(debug: &str) -> String {
    let name = debug.split(|it: char| !it.is_alphanumeric()).next();
    let mut words = String::new();
    for letter in name.unwrap_or_default().chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}
