//! `neap idle wake`, `sleep` and `keep-awake`: asks the operator by a note on the object, which it goes
//! by as soon as it sees it, and so does whoever leads after it.

use std::{io::Write, time::Duration};

use jiff::Timestamp;
use kube::api::ApiResource;
use neap_idle::{
    account::{State, account},
    api::ElastiService,
    service::facts::{KEEP_AWAKE_UNTIL, SLEEP, WAKE},
};
use neap_kit::{
    apply::{self, Hand, Kind},
    key::Key,
    lease::Leadership,
    why::chain,
};
use serde_json::{Value, json};

use super::place::Place;
use crate::{
    ask::print,
    cli::{KeepOptions, Output, SleepOptions, WakeOptions, Which},
    exit::{Exit, Failure},
    symbols::Symbols,
};

/// So often one looks while one waits.
const LOOK: Duration = Duration::from_millis(200);

/// What was done to services, for whoever asked.
struct Done {
    /// In a word of JSON.
    what: &'static str,
    /// After the name of the service.
    says: String,
}

pub(super) async fn wake(
    options: &WakeOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let place = Place::of(&options.which.scope).await?;
    let services = chosen(&place, &options.which).await?;
    note(&place, &services, WAKE, &json!(place.clock.now())).await?;
    let mut says = "is asked to wake";
    if let Some(limit) = options.wait {
        let awake = |state| matches!(state, State::Awake);
        until(&place, &services, limit, awake, "awake").await?;
        says = "is awake";
    }
    let done = Done {
        what: "wake",
        says: says.to_owned(),
    };
    told(&options.which, &services, &done, symbols, out)
}

pub(super) async fn sleep(
    options: &SleepOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let place = Place::of(&options.which.scope).await?;
    let services = chosen(&place, &options.which).await?;
    note(&place, &services, SLEEP, &json!(place.clock.now())).await?;
    let mut says = "is asked to sleep";
    if let Some(limit) = options.wait {
        let asleep = |state| state == State::Asleep;
        until(&place, &services, limit, asleep, "asleep").await?;
        says = "is asleep";
    }
    let done = Done {
        what: "sleep",
        says: says.to_owned(),
    };
    told(&options.which, &services, &done, symbols, out)?;
    if options.which.output == Output::Json {
        return Ok(());
    }
    let now = place.clock.now();
    for kept in services.iter().map(|service| account(service, now)) {
        if let Some(until) = kept.kept_awake_until {
            let name = &kept.name;
            let line = format!(
                "  {name} is kept awake until {until} and sleeps after that; sooner with: \
                 neap idle keep-awake {name} --off"
            );
            print::text(out, &line)?;
        }
    }
    Ok(())
}

pub(super) async fn keep_awake(
    options: &KeepOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let place = Place::of(&options.which.scope).await?;
    let services = chosen(&place, &options.which).await?;
    let until = until_when(options, place.clock.now())?;
    note(&place, &services, KEEP_AWAKE_UNTIL, &json!(until)).await?;
    let says = match until {
        Some(until) => format!("is kept awake until {until}"),
        None => "may sleep again".to_owned(),
    };
    let what = "keep-awake";
    told(
        &options.which,
        &services,
        &Done { what, says },
        symbols,
        out,
    )
}

/// Nothing only if it was asked to end.
fn until_when(options: &KeepOptions, now: Timestamp) -> Result<Option<Timestamp>, Failure> {
    let Some(lasting) = options.lasting.filter(|lasting| !lasting.is_zero()) else {
        let past = options.until.is_some_and(|until| until <= now) || options.lasting.is_some();
        return if past {
            Err(over(now))
        } else {
            Ok(options.until)
        };
    };
    let until = now.checked_add(lasting).map_err(|_| {
        let why = format!("{lasting:?} from now no calendar goes on");
        Failure::new("NT-IDLE-0012", Exit::Usage, "until when?", &why)
            .remedy("name a shorter time, or delete the ElastiService of what is never to sleep")
    })?;
    Ok(Some(until))
}

fn over(now: Timestamp) -> Failure {
    let why = format!("that time is over: it is {now}");
    Failure::new("NT-IDLE-0012", Exit::Usage, "until when?", &why)
        .remedy("name a time to come; --off lets it sleep again")
}

/// Those that were named, or all.
async fn chosen(place: &Place, which: &Which) -> Result<Vec<ElastiService>, Failure> {
    if which.all {
        return place.services().await;
    }
    if place.namespace.is_none() {
        let why = "a name means an object of one namespace, and -A means all of them";
        return Err(
            Failure::new("NT-IDLE-0010", Exit::Usage, "which one is meant?", why)
                .remedy("name the namespace with -n, or ask for --all"),
        );
    }
    let mut services = Vec::new();
    for name in &which.names {
        services.push(place.service(name).await?);
    }
    Ok(services)
}

/// Writes a note on each of them; one that is nothing is taken away.
async fn note(
    place: &Place,
    services: &[ElastiService],
    name: &str,
    value: &Value,
) -> Result<(), Failure> {
    let hand = hand(place);
    let kind = Kind {
        resource: ApiResource::erase::<ElastiService>(&()),
        namespaced: true,
    };
    for service in services {
        let mut seen = service.metadata.clone();
        // What else was changed since it was read does not matter.
        seen.resource_version = None;
        let change = json!({"metadata": {"annotations": {name: value}}});
        let written = hand.merge(&kind, &seen, None, change).await;
        written.map_err(|error| unwritten(&Key::of(service), &error))?;
    }
    Ok(())
}

/// A person has nobody beside them.
pub(super) fn hand(place: &Place) -> Hand {
    let leadership = Leadership::alone(place.clock);
    Hand::new(
        place.cluster.client.clone(),
        "neap-cli",
        leadership,
        place.clock,
    )
}

pub(super) fn unwritten(key: &Key, error: &apply::Error) -> Failure {
    let what = format!("ElastiService {key} cannot be changed");
    Failure::new("NT-IDLE-0008", Exit::Failed, &what, &chain(error)).remedy(
        "see whether you may: kubectl auth can-i patch elastiservices.elasti.truefoundry.com",
    )
}

async fn until(
    place: &Place,
    services: &[ElastiService],
    limit: Duration,
    is: impl Fn(State) -> bool,
    word: &str,
) -> Result<(), Failure> {
    let deadline = place.clock.uptime() + limit;
    for service in services {
        let namespace = service.metadata.namespace.clone();
        let name = service.metadata.name.clone().unwrap_or_default();
        let place = Place {
            cluster: place.cluster.clone(),
            namespace,
            clock: place.clock,
        };
        loop {
            let account = account(&place.service(&name).await?, place.clock.now());
            if is(account.state) {
                break;
            }
            if place.clock.uptime() >= deadline {
                let what = format!("{name} is not {word} after {limit:?}");
                let why = format!("it is {}: {}", account.state.word(), account.why.join("; "));
                return Err(
                    Failure::new("NT-IDLE-0009", Exit::TimedOut, &what, &why).remedy(format!(
                        "neap explain elastiservice/{name} says more; it goes on meanwhile"
                    )),
                );
            }
            place.clock.sleep(LOOK).await;
        }
    }
    Ok(())
}

fn told(
    which: &Which,
    services: &[ElastiService],
    done: &Done,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let keys: Vec<_> = services.iter().map(Key::of).collect();
    if which.output == Output::Json {
        let name = |key: &Key| json!({"namespace": key.namespace(), "name": key.name()});
        let items: Vec<_> = keys.iter().map(name).collect();
        return print::json(out, "IdleDone", &json!({"done": done.what, "items": items}));
    }
    if keys.is_empty() {
        return print::text(out, "There is none.");
    }
    let line = |key: &Key| format!("{} {key} {}", symbols.done, done.says);
    let lines: Vec<_> = keys.iter().map(line).collect();
    print::text(out, &lines.join("\n"))
}
