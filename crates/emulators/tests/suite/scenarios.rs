//! The scenario files against our registry, in memory, and against Debian's.

use neap_emulators::{
    registry::{Registry, Settings},
    system::Emulator,
};
use neap_kit::{client::Client, clock::Clock};

use crate::{
    peers::Debian,
    scenario::{Scenario, parse},
};

fn all() -> Vec<Scenario> {
    let files = [
        include_str!("../scenarios/pull.md"),
        include_str!("../scenarios/push.md"),
        include_str!("../scenarios/discovery.md"),
        include_str!("../scenarios/management.md"),
    ];
    files.iter().flat_map(|text| parse(text)).collect()
}

async fn play(client: &Client, base: &str, scenarios: &[Scenario]) {
    let mut problems = Vec::new();
    for (number, scenario) in scenarios.iter().enumerate() {
        let repo = format!("scenarios/number-{number}");
        if let Err(problem) = scenario.play(client, base, &repo).await {
            problems.push(problem);
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[tokio::test(start_paused = true)]
async fn our_registry_behaves_as_the_specification_says() {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let registry = Emulator::new(Registry::in_memory(Settings::default(), clock), clock);
    let client = Client::builder("test", clock).transport(registry.transport());
    let scenarios = all();
    assert!(scenarios.len() >= 20, "{} scenarios", scenarios.len());
    play(
        &client.build().unwrap(),
        "http://registry.example.com/",
        &scenarios,
    )
    .await;
}

#[tokio::test]
async fn debians_registry_behaves_as_ours() {
    let test = "debians_registry_behaves_as_ours";
    let Some(debian) = Debian::start(test).await else {
        return;
    };
    let client = Client::builder("test", Clock::system()).build().unwrap();
    let mut scenarios = all();
    scenarios.retain(|scenario| !scenario.only_ours);
    assert!(scenarios.len() >= 14, "{} scenarios", scenarios.len());
    play(&client, &format!("http://{}/", debian.address), &scenarios).await;
}
