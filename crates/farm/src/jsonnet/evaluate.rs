//! The evaluation itself.

use std::collections::BTreeMap;

use rsjsonnet_lang::{
    arena::Arena,
    interner::InternedStr,
    program::{Callbacks, EvalStackTraceItem, ImportError, NativeError, Program, Thunk, Value},
    span::SpanId,
};
use serde::{Deserialize, Serialize};

use super::message;

/// The depth of nested calls.
const MAX_STACK: usize = 500;

/// What to evaluate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationRequest {
    /// The files, by name.
    pub files: BTreeMap<String, String>,
    /// The file to evaluate.
    pub main: String,
    /// External variables.
    pub variables: BTreeMap<String, String>,
}

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EvaluationResponse {
    /// The value, as JSON.
    Value(serde_json::Value),
    /// Why there is none.
    Failed(String),
}

/// Evaluates in this process, without limits of time and memory.
pub fn evaluate(request: &EvaluationRequest) -> EvaluationResponse {
    match run(request) {
        Ok(text) => match serde_json::from_str(&text) {
            Ok(value) => EvaluationResponse::Value(value),
            Err(error) => EvaluationResponse::Failed(error.to_string()),
        },
        Err(message) => EvaluationResponse::Failed(message),
    }
}

fn run(request: &EvaluationRequest) -> Result<String, String> {
    let arena = Arena::new();
    let mut program = Program::new(&arena);
    program.set_max_stack(MAX_STACK);
    for (name, value) in &request.variables {
        let value = Value::string(value);
        let thunk = program.value_to_thunk(&value);
        let name = program.intern_str(name);
        program.add_ext_var(name, &thunk);
    }
    let mut files = Files {
        texts: &request.files,
        loaded: BTreeMap::new(),
        failure: None,
    };
    let Some(main) = files.load(&mut program, &request.main) else {
        return Err(files.failure.unwrap_or_default());
    };
    let result = program
        .eval_value(&main, &mut files)
        .and_then(|value| program.manifest_json(&value, false));
    result.map_err(|error| {
        let failure = files.failure;
        failure.unwrap_or_else(|| message::of_evaluation(&error.kind))
    })
}

/// The line of a position in a file.
fn line_at(text: &str, position: usize) -> usize {
    let before = text.bytes().take(position);
    1 + before.filter(|it| *it == b'\n').count()
}

struct Files<'a, 'p> {
    texts: &'a BTreeMap<String, String>,
    loaded: BTreeMap<String, Thunk<'p>>,
    failure: Option<String>,
}

impl<'p> Files<'_, 'p> {
    fn text(&mut self, path: &str) -> Option<String> {
        let name = path.strip_prefix("./").unwrap_or(path);
        let found = self.texts.get(name).cloned();
        if found.is_none() {
            self.failure = Some(format!(
                "it imports {path:?}, and the ConfigMap has no such key; other files are not read"
            ));
        }
        found
    }

    fn load(&mut self, program: &mut Program<'p>, path: &str) -> Option<Thunk<'p>> {
        if let Some(thunk) = self.loaded.get(path) {
            return Some(thunk.clone());
        }
        let text = self.text(path)?;
        let (context, _) = program.span_manager_mut().insert_source_context(text.len());
        match program.load_source(context, text.as_bytes(), true, path) {
            Ok(thunk) => {
                self.loaded.insert(path.to_owned(), thunk.clone());
                Some(thunk)
            }
            Err(error) => {
                let (span, what) = message::of_load(&error);
                let (_, start, _) = program.span_manager().get_span(span);
                let line = line_at(&text, start);
                self.failure = Some(format!("{path} is no valid Jsonnet: line {line}: {what}"));
                None
            }
        }
    }
}

impl<'p> Callbacks<'p> for Files<'_, 'p> {
    fn import(
        &mut self,
        program: &mut Program<'p>,
        _: SpanId,
        path: &str,
    ) -> Result<Thunk<'p>, ImportError> {
        self.load(program, path).ok_or(ImportError)
    }

    fn import_str(
        &mut self,
        _: &mut Program<'p>,
        _: SpanId,
        path: &str,
    ) -> Result<String, ImportError> {
        // Certificates and keys are mounted into the pod, and only their presence matters here.
        if path.starts_with('/') {
            return Ok(path.to_owned());
        }
        self.text(path).ok_or(ImportError)
    }

    fn import_bin(
        &mut self,
        _: &mut Program<'p>,
        _: SpanId,
        path: &str,
    ) -> Result<Vec<u8>, ImportError> {
        self.text(path).map(String::into_bytes).ok_or(ImportError)
    }

    fn trace(&mut self, _: &mut Program<'p>, _: &str, _: &[EvalStackTraceItem]) {}

    fn native_call(
        &mut self,
        _: &mut Program<'p>,
        _: InternedStr<'p>,
        _: &[Value<'p>],
    ) -> Result<Value<'p>, NativeError> {
        Err(NativeError)
    }
}
