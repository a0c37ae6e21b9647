//! Progress bars on standard error, if it is a terminal.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use neap_release::oci::transfer::Progress;

/// The time between two updates of the bar.
const INTERVAL: Duration = Duration::from_millis(100);

/// Runs `work`, and shows how far `progress` has got meanwhile.
pub(super) async fn show<T>(
    title: &str,
    quiet: bool,
    progress: &Progress,
    work: impl Future<Output = T>,
) -> T {
    let visible = !quiet && io::stderr().is_terminal();
    let target = if visible {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(0), target);
    let template = "{msg}  {bar:30} {bytes}/{total_bytes}  {bytes_per_sec}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let watch = async {
        loop {
            let now = progress.snapshot();
            bar.set_length(now.bytes);
            bar.set_position(now.bytes_done);
            bar.set_message(format!("{title} {}/{} blobs", now.blobs_done, now.blobs));
            tokio::time::sleep(INTERVAL).await;
        }
    };
    tokio::pin!(work);
    let result = tokio::select! {
        result = &mut work => result,
        () = watch => unreachable!("the bar is updated until the work ends"),
    };
    bar.finish_and_clear();
    result
}
