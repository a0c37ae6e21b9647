//! Evaluation in a process of its own.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use futures::future::BoxFuture;
use neap_kit::clock::Clock;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
    sync::Semaphore,
};

use super::{Evaluate, EvaluationError, EvaluationRequest, EvaluationResponse, evaluate};

/// The memory of an evaluation.
pub const MAX_MEMORY_BYTES: u64 = 512 << 20;
/// The processor time of an evaluation.
pub const MAX_SECONDS: u64 = 10;
/// The time until the process is killed, whatever it does.
const DEADLINE: Duration = Duration::from_secs(20);
/// A ConfigMap has at most one mebibyte; a configuration is not larger.
const MAX_OUTPUT_BYTES: u64 = 4 << 20;

/// Starts a process for each evaluation.
#[derive(Debug)]
pub struct EvaluatorProcess {
    program: PathBuf,
    clock: Clock,
    /// One at a time: its memory counts as ours in a pod.
    turn: Semaphore,
}

impl EvaluatorProcess {
    /// An evaluator that runs `program farm jsonnet`.
    pub fn new(program: PathBuf, clock: Clock) -> Self {
        Self {
            program,
            clock,
            turn: Semaphore::new(1),
        }
    }

    async fn run(&self, request: &EvaluationRequest) -> io::Result<Vec<u8>> {
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
        if status.success() {
            output
        } else {
            Ok(Vec::new())
        }
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
            let _turn = self.turn.acquire().await;
            let request = EvaluationRequest {
                files: files.clone(),
                main: main.to_owned(),
                variables: variables.clone(),
            };
            let Some(output) = self.clock.within(DEADLINE, self.run(&request)).await else {
                return Err(EvaluationError::Exceeded("20 seconds"));
            };
            let output = output.map_err(|error| EvaluationError::Unavailable(error.to_string()))?;
            match serde_json::from_slice(&output) {
                Ok(EvaluationResponse::Value(value)) => Ok(value),
                Ok(EvaluationResponse::Failed(message)) => Err(EvaluationError::Failed(message)),
                Err(_) => Err(EvaluationError::Exceeded(
                    "10 seconds of processor time or 512 MiB of memory",
                )),
            }
        })
    }
}

/// What the process does: limits itself, reads a request, and writes the response.
pub fn serve(input: impl Read, mut output: impl Write) -> io::Result<()> {
    let limit = |bound| Rlimit {
        current: Some(bound),
        maximum: Some(bound),
    };
    setrlimit(Resource::As, limit(MAX_MEMORY_BYTES))?;
    setrlimit(Resource::Cpu, limit(MAX_SECONDS))?;
    setrlimit(Resource::Nofile, limit(16))?;
    let request = serde_json::from_reader(input.take(MAX_OUTPUT_BYTES))?;
    let response = serde_json::to_vec(&evaluate(&request))?;
    output.write_all(&response)?;
    output.flush()
}
