//! The cost of watching: memory per object, time and CPU time per event.

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
    bulk::send_all,
    client::Client,
    follower::{FollowerMode, number},
    process::{cpu_seconds, peak_bytes, reset_peak, resident_bytes},
    server::Server,
    stopwatch::Stopwatch,
};

const FEW_OBJECTS: usize = 10_000;
const MANY_OBJECTS: usize = 50_000;
const CHANGES: usize = 20_000;
/// Objects, and changes, that cause a write.
const WRITTEN: usize = 5_000;
/// Time after a burst for a process to release memory.
const RELEASE_TIME: Duration = Duration::from_secs(2);
/// Time to wait for anything that must happen.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

/// A controller that watches ConfigMaps, complete or their metadata only.
pub async fn kit(neap: &Path, mode: FollowerMode) -> Result<Vec<Figure>> {
    let server = Server::start(neap, None)?;
    let client = server.client()?;
    prepare(&mut client.connect().await?).await?;
    send_all(&client, CONNECTIONS, FEW_OBJECTS, create).await?;
    let (small, _) = FollowerProcess::start(server.kubeconfig(), mode)?
        .settled()
        .await?;
    send_all(&client, CONNECTIONS, MANY_OBJECTS - FEW_OBJECTS, |number| {
        create(FEW_OBJECTS + number)
    })
    .await?;
    let mut follower = FollowerProcess::start(server.kubeconfig(), mode)?;
    let (large, synced) = follower.measure().await?;
    let slope = (large - small) / (MANY_OBJECTS - FEW_OBJECTS) as f64;
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

/// The cost of a change to a controller that writes once for it: its writes and reads. Reopened
/// watches are neither. Each object changes once, so that one write cannot answer two changes.
pub async fn writing(neap: &Path) -> Result<Vec<Figure>> {
    let server = Server::start(neap, None)?;
    let client = server.client()?;
    prepare(&mut client.connect().await?).await?;
    send_all(&client, CONNECTIONS, WRITTEN, create).await?;
    let mut follower = FollowerProcess::start(server.kubeconfig(), FollowerMode::Write)?;
    follower.measure().await?;
    let counted = follower.until("writes", WRITTEN as f64).await?;
    let (writes, reads) = (number(&counted, "writes")?, number(&counted, "read")?);
    send_all(&client, CONNECTIONS, WRITTEN, |number| {
        update(number, WRITTEN)
    })
    .await?;
    follower.until("writes", writes + WRITTEN as f64).await?;
    // Surplus requests come late.
    sleep(RELEASE_TIME).await;
    let after = follower.command("report")?;
    let each =
        |key: &str, before: f64| anyhow::Ok((number(&after, key)? - before) / WRITTEN as f64);
    Ok(vec![
        ("writes per change", each("writes", writes)?),
        ("reads per change", each("read", reads)?),
    ])
}

/// A follower process; killed when dropped.
struct FollowerProcess {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl FollowerProcess {
    fn start(kubeconfig: &Path, mode: FollowerMode) -> Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.arg("follow").arg("--kubeconfig").arg(kubeconfig);
        command.args(match mode {
            FollowerMode::Whole => None,
            FollowerMode::Metadata => Some("--metadata"),
            FollowerMode::Write => Some("--write"),
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

    fn command(&mut self, word: &str) -> Result<String> {
        writeln!(self.stdin, "{word}")?;
        let mut answer = String::new();
        self.stdout.read_line(&mut answer)?;
        Ok(answer)
    }

    async fn settled(mut self) -> Result<(f64, f64)> {
        self.measure().await
    }

    /// The memory once it has synced, and the seconds from its start until then.
    async fn measure(&mut self) -> Result<(f64, f64)> {
        let synced = number(&self.command("sync")?, "took")?;
        sleep(RELEASE_TIME).await;
        Ok((resident_bytes(self.child.id())? as f64, synced))
    }

    /// CPU seconds per event, and API calls per change that leaves nothing to write. Reopened
    /// watches do not count: here they are reopened on purpose.
    async fn changes(&mut self, client: &Client) -> Result<(f64, f64)> {
        let before = self.command("report")?;
        let began = cpu_seconds(self.child.id())?;
        send_all(client, CONNECTIONS, CHANGES, |number| {
            update(number, MANY_OBJECTS)
        })
        .await?;
        let heard = number(&before, "applied")? + CHANGES as f64;
        let after = self.until("applied", heard).await?;
        sleep(RELEASE_TIME).await;
        let work = cpu_seconds(self.child.id())? - began;
        let calls =
            |answer: &str| anyhow::Ok(number(answer, "calls")? - number(answer, "reopened")?);
        let calls = calls(&after)? - calls(&before)?;
        Ok((work / CHANGES as f64, calls / CHANGES as f64))
    }

    /// The peak memory during a relist, as a multiple of the memory before.
    async fn relist(&mut self) -> Result<f64> {
        let id = self.child.id();
        let before = resident_bytes(id)? as f64;
        let listed = number(&self.command("report")?, "listed")?;
        reset_peak(id)?;
        self.command("expire")?;
        self.until("listed", listed + MANY_OBJECTS as f64).await?;
        Ok(peak_bytes(id)? as f64 / before)
    }

    async fn until(&mut self, key: &str, least: f64) -> Result<String> {
        let watch = Stopwatch::start();
        loop {
            let answer = self.command("report")?;
            let reached = number(&answer, key)?;
            if reached >= least {
                return Ok(answer);
            }
            ensure!(watch.elapsed() < WAIT_TIMEOUT, "{key} stays at {reached}");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for FollowerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
