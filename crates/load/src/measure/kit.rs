//! What it costs a process to watch: memory for each object, time and work for each event.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;

use super::{CONNECTIONS, Figure, create, prepare, update};
use crate::{
    client::Client,
    follower::{Purpose, number},
    process::{forget_peak, peak_bytes, resident_bytes, worked},
    rush::rush,
    server::Server,
    stopwatch::Stopwatch,
};

const FEW: usize = 10_000;
const MANY: usize = 50_000;
const CHANGES: usize = 20_000;
/// Objects, and changes, for which there is something to write.
const WRITTEN: usize = 5_000;
/// After a burst a process gives back what it needed for it.
const SETTLE: Duration = Duration::from_secs(2);
/// What has not happened after this long never will.
const PATIENCE: Duration = Duration::from_mins(2);

/// A controller that follows so many ConfigMaps, whole or their metadata alone.
pub async fn kit(neap: &Path, purpose: Purpose) -> Result<Vec<Figure>> {
    let server = Server::start(neap, None)?;
    let client = server.client()?;
    prepare(&mut client.connect().await?).await?;
    rush(&client, CONNECTIONS, FEW, create).await?;
    let (small, _) = Follower::start(server.kubeconfig(), purpose)?
        .settled()
        .await?;
    rush(&client, CONNECTIONS, MANY - FEW, |number| {
        create(FEW + number)
    })
    .await?;
    let mut follower = Follower::start(server.kubeconfig(), purpose)?;
    let (large, synced) = follower.measure().await?;
    let slope = (large - small) / (MANY - FEW) as f64;
    let (work, calls) = follower.changes(&client).await?;
    let peak = follower.relist().await?;
    Ok(vec![
        ("memory per object", slope),
        ("synced", synced * 1000.0),
        ("work per event", work * 1e6),
        ("calls per change", calls),
        ("peak of a relist", peak),
    ])
}

/// What a change costs a controller that has one thing to write for it: writes and reads, and the
/// watches that are opened anew are neither. Each object changes once, so that no two changes are
/// made up for by one write.
pub async fn writing(neap: &Path) -> Result<Vec<Figure>> {
    let server = Server::start(neap, None)?;
    let client = server.client()?;
    prepare(&mut client.connect().await?).await?;
    rush(&client, CONNECTIONS, WRITTEN, create).await?;
    let mut follower = Follower::start(server.kubeconfig(), Purpose::Write)?;
    follower.measure().await?;
    let counted = follower.until("writes", WRITTEN as f64).await?;
    let (writes, reads) = (number(&counted, "writes")?, number(&counted, "read")?);
    rush(&client, CONNECTIONS, WRITTEN, |number| {
        update(number, WRITTEN)
    })
    .await?;
    follower.until("writes", writes + WRITTEN as f64).await?;
    // What is too much comes late.
    sleep(SETTLE).await;
    let after = follower.ask("report")?;
    let each =
        |key: &str, before: f64| anyhow::Ok((number(&after, key)? - before) / WRITTEN as f64);
    Ok(vec![
        ("writes per change", each("writes", writes)?),
        ("reads per change", each("read", reads)?),
    ])
}

/// The process that follows; killed if this value goes.
struct Follower {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Follower {
    fn start(kubeconfig: &Path, purpose: Purpose) -> Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.arg("follow").arg("--kubeconfig").arg(kubeconfig);
        command.args(match purpose {
            Purpose::Whole => None,
            Purpose::Metadata => Some("--metadata"),
            Purpose::Write => Some("--write"),
        });
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run a follower")?;
        let stdin = child.stdin.take().context("it has no input")?;
        let stdout = child.stdout.take().context("it has no output")?;
        Ok(Self {
            child,
            stdin,
            stdout: BufReader::new(stdout),
        })
    }

    fn ask(&mut self, word: &str) -> Result<String> {
        writeln!(self.stdin, "{word}")?;
        let mut answer = String::new();
        self.stdout.read_line(&mut answer)?;
        Ok(answer)
    }

    async fn settled(mut self) -> Result<(f64, f64)> {
        self.measure().await
    }

    /// Memory once it knows everything, and the seconds from its start until then.
    async fn measure(&mut self) -> Result<(f64, f64)> {
        let synced = number(&self.ask("sync")?, "took")?;
        sleep(SETTLE).await;
        Ok((resident_bytes(self.child.id())? as f64, synced))
    }

    /// Seconds of work for each event, and API calls for each change that leaves nothing to write.
    /// Watches that are opened anew are not counted: here they are so on purpose.
    async fn changes(&mut self, client: &Client) -> Result<(f64, f64)> {
        let before = self.ask("report")?;
        let began = worked(self.child.id())?;
        rush(client, CONNECTIONS, CHANGES, |number| update(number, MANY)).await?;
        let heard = number(&before, "applied")? + CHANGES as f64;
        let after = self.until("applied", heard).await?;
        sleep(SETTLE).await;
        let work = worked(self.child.id())? - began;
        let calls =
            |answer: &str| anyhow::Ok(number(answer, "calls")? - number(answer, "reopened")?);
        let calls = calls(&after)? - calls(&before)?;
        Ok((work / CHANGES as f64, calls / CHANGES as f64))
    }

    /// How many times the memory from before the process holds at most while it lists anew.
    async fn relist(&mut self) -> Result<f64> {
        let id = self.child.id();
        let before = resident_bytes(id)? as f64;
        let listed = number(&self.ask("report")?, "listed")?;
        forget_peak(id)?;
        self.ask("expire")?;
        self.until("listed", listed + MANY as f64).await?;
        Ok(peak_bytes(id)? as f64 / before)
    }

    async fn until(&mut self, key: &str, least: f64) -> Result<String> {
        let watch = Stopwatch::start();
        loop {
            let answer = self.ask("report")?;
            let reached = number(&answer, key)?;
            if reached >= least {
                return Ok(answer);
            }
            ensure!(watch.elapsed() < PATIENCE, "{key} stays at {reached}");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
