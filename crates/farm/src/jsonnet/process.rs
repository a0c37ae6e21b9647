//! Evaluation in a process of its own.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read, Write},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use futures::future::BoxFuture;
use neap_kit::clock::Clock;
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
};

use super::{Evaluate, EvaluationError, EvaluationRequest, EvaluationResponse, evaluate};

/// The memory of an evaluation.
pub const MAX_MEMORY_BYTES: u64 = 512 << 20;
/// The processor time of an evaluation.
pub const MAX_SECONDS: u64 = 10;
/// The time until the process is killed, whatever it does. With half a processor, as in the operator's pod,
/// the processor time is used up well before.
const DEADLINE: Duration = Duration::from_secs(40);
/// A ConfigMap has at most one mebibyte; a configuration is not larger.
const MAX_OUTPUT_BYTES: u64 = 4 << 20;

/// Starts a process for each evaluation.
#[derive(Debug)]
pub struct EvaluatorProcess {
    program: PathBuf,
    clock: Clock,
}

/// What a process has answered, and how it ended.
pub(super) struct Ended {
    pub(super) output: Vec<u8>,
    pub(super) status: ExitStatus,
}

impl EvaluatorProcess {
    /// An evaluator that runs `program farm jsonnet`.
    pub fn new(program: PathBuf, clock: Clock) -> Self {
        Self { program, clock }
    }

    async fn run(&self, request: &EvaluationRequest) -> io::Result<Ended> {
        let input = serde_json::to_vec(request)?;
        let mut child = Command::new(&self.program)
            .args(["farm", "jsonnet"])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let write = async {
            if let Some(mut stdin) = stdin {
                // A process that has ended reads nothing; its status says why.
                let _ = stdin.write_all(&input).await;
            }
        };
        let read = async {
            let mut output = Vec::new();
            if let Some(stdout) = stdout {
                stdout
                    .take(MAX_OUTPUT_BYTES)
                    .read_to_end(&mut output)
                    .await?;
            }
            io::Result::Ok(output)
        };
        let ((), output) = tokio::join!(write, read);
        let status = child.wait().await?;
        let output = output?;
        Ok(Ended { output, status })
    }
}

impl Evaluate for EvaluatorProcess {
    fn evaluate<'a>(
        &'a self,
        files: &'a BTreeMap<String, String>,
        main: &'a str,
        variables: &'a BTreeMap<String, String>,
    ) -> BoxFuture<'a, Result<Value, EvaluationError>> {
        Box::pin(async move {
            let request = EvaluationRequest {
                files: files.clone(),
                main: main.to_owned(),
                variables: variables.clone(),
            };
            let Some(ended) = self.clock.within(DEADLINE, self.run(&request)).await else {
                return Err(EvaluationError::TimedOut("40 seconds"));
            };
            result(&ended.map_err(|error| EvaluationError::Unavailable(error.to_string()))?)
        })
    }
}

/// The result of an evaluation. Only the bounds that the process has set itself follow from the file: another
/// signal is that of a machine without memory, and an exit code that of a program that could not start.
pub(super) fn result(ended: &Ended) -> Result<Value, EvaluationError> {
    if ended.output.len() as u64 >= MAX_OUTPUT_BYTES {
        return Err(EvaluationError::Exceeded("4 MiB of output"));
    }
    let signal = ended.status.signal().and_then(Signal::from_named_raw);
    if signal == Some(Signal::XCPU) {
        return Err(EvaluationError::Exceeded("10 seconds of processor time"));
    }
    // Where the allocator gives up, and where the stack ends.
    if [Some(Signal::ABORT), Some(Signal::SEGV)].contains(&signal) {
        return Err(EvaluationError::Exceeded("512 MiB of memory"));
    }
    if !ended.status.success() {
        let message = format!("the evaluator ended with {}", ended.status);
        return Err(EvaluationError::Unavailable(message));
    }
    match serde_json::from_slice(&ended.output) {
        Ok(EvaluationResponse::Value(value)) => Ok(value),
        Ok(EvaluationResponse::Failed(message)) => Err(EvaluationError::Failed(message)),
        Err(error) => Err(EvaluationError::Unavailable(error.to_string())),
    }
}

/// What the process does: limits itself, reads a request, and writes the response.
pub fn serve(input: impl Read, mut output: impl Write) -> io::Result<()> {
    let limit = |bound| Rlimit {
        current: Some(bound),
        maximum: Some(bound),
    };
    // A pod without memory loses the evaluation and not the operator.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    setrlimit(Resource::As, limit(MAX_MEMORY_BYTES))?;
    // The first bound ends it with a signal of its own, the second one with that of any kill.
    let seconds = Rlimit {
        current: Some(MAX_SECONDS),
        maximum: Some(MAX_SECONDS + 1),
    };
    setrlimit(Resource::Cpu, seconds)?;
    setrlimit(Resource::Nofile, limit(16))?;
    let request = serde_json::from_reader(input.take(MAX_OUTPUT_BYTES))?;
    let response = serde_json::to_vec(&evaluate(&request))?;
    output.write_all(&response)?;
    output.flush()
}
