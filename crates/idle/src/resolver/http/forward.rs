//! Sends a request to a pod, once.

use std::{pin::pin, time::Duration};

use http::{Request, Response, StatusCode};
use hyper::{body::Incoming, upgrade::OnUpgrade};
use neap_kit::telemetry::continue_trace;

use super::{
    answer,
    body::{Answered, Carried, UnderWay, Until},
    connection::{Connection, Unanswered},
    handle::{From, Going, Unplaced},
    headers,
    sent::Sent,
    upgrade,
};
use crate::resolver::{
    activity::Open,
    events::SentElsewhere,
    hold::{Holding, Refused},
};

/// Whoever still sends its request after this time keeps nobody else from going to the pod.
const SENDS: Duration = Duration::from_secs(5);

/// What became of a request that was to be sent.
enum Fate {
    Answered(Response<Incoming>, Connection),
    /// Nothing of it was sent.
    Refused(Refused),
    /// It was sent, and this came back.
    Broken(hyper::Error),
    /// It was sent, and nothing came back in time.
    Silent,
}

pub(super) async fn forward(
    from: &From,
    mut going: Going,
    open: Open,
    under_way: UnderWay,
) -> Response<Answered> {
    let switch = headers::wanted(going.head.version, &going.head.headers);
    let client = switch.and_then(|_| going.head.extensions.remove::<OnUpgrade>());
    let placed = going.place().await;
    continue_trace(going.holding.span(), &going.head.headers);
    if let Err(unplaced) = placed {
        return not_sent(from, &going.holding, &unplaced);
    }
    let (mut holding, request) = going.request(from.source);
    // Apart, so that those who are held do not carry it along.
    let fate = Box::pin(send(from, &mut holding, request)).await;
    let key = holding.route().service.key.clone();
    match fate {
        Fate::Refused(refused) => {
            from.resolver.refused(&holding, &refused);
            answer::refused(&refused)
        }
        Fate::Broken(error) => {
            let resolver = &from.resolver;
            resolver.turned_away(holding.route(), answer::BROKEN, &error);
            answer::broken(&key)
        }
        Fate::Silent => {
            let late = holding.late();
            from.resolver.refused(&holding, &late);
            answer::silent(&late)
        }
        Fate::Answered(mut response, connection) => {
            holding.answered();
            let cold = from.resolver.served(&holding);
            let switched = response.status() == StatusCode::SWITCHING_PROTOCOLS;
            headers::towards_client(response.headers_mut(), switched);
            if let Some(breakdown) = cold {
                response = answer::with_cold_start(response, &breakdown);
            }
            let mut until = Until {
                _open: open,
                _under_way: under_way,
                lent: connection.lent(),
            };
            if switched {
                if let Some(lent) = &mut until.lent {
                    lent.let_go_on();
                }
                return upgrade::switch(from, client, response, until);
            }
            response.map(|body| Answered::Pod(Carried::new(body, until)))
        }
    }
}

/// What is answered where nothing was sent.
fn not_sent(from: &From, holding: &Holding, unplaced: &Unplaced) -> Response<Answered> {
    match unplaced {
        Unplaced::Refused(refused) => {
            from.resolver.refused(holding, refused);
            answer::refused(refused)
        }
        Unplaced::Unread => {
            // Nonsense is counted with its connection.
            if from.talk.bad.get().is_none() {
                let (route, resolver) = (holding.route(), &from.resolver);
                resolver.turned_away(route, answer::LEFT, &answer::UNREAD);
            }
            answer::unread()
        }
    }
}

/// Sends it to the first pod that takes it. One that was not sent goes to another; one that was is
/// never sent again.
async fn send(from: &From, holding: &mut Holding, mut request: Request<Sent>) -> Fate {
    let version = request.version();
    loop {
        let pod = match holding.place().await {
            Ok(pod) => pod,
            Err(refused) => return Fate::Refused(refused),
        };
        let client = &from.resolver.client;
        let Ok(mut connection) = client.connection(pod, version).await else {
            holding.refused();
            continue;
        };
        holding.connected();
        let sent = in_time(from, holding, &mut connection, request).await;
        let refused = match sent {
            None => return Fate::Silent,
            Some(Ok(response)) => return Fate::Answered(response, connection),
            Some(Err(Unanswered::Broken(error))) => return Fate::Broken(error),
            Some(Err(Unanswered::Unsent {
                request: unsent,
                refused,
            })) => {
                request = *unsent;
                refused
            }
        };
        from.resolver.meter.emit(&SentElsewhere {
            service: &holding.route().service.key,
            protocol: holding.route().port.protocol,
        });
        if refused {
            holding.refused();
        }
    }
}

/// Sends it, and gives what came of that; nothing if the time is up before there is an answer.
async fn in_time(
    from: &From,
    holding: &mut Holding,
    connection: &mut Connection,
    request: Request<Sent>,
) -> Option<Result<Response<Incoming>, Unanswered>> {
    let clock = from.resolver.clock;
    // Who sends for a long time may well be answered at the end only, so that time does not count.
    let (left, ended) = (holding.left(), request.body().ended());
    let late = async {
        if let Some(ended) = &ended {
            ended.cancelled().await;
        }
        clock.sleep(left).await;
    };
    let mut sending = pin!(async {
        tokio::select! {
            biased;
            sent = connection.send(request) => Some(sent),
            () = late => None,
        }
    });
    if let Some(ended) = &ended {
        tokio::select! {
            biased;
            sent = sending.as_mut() => return sent,
            uploaded = clock.within(SENDS, ended.cancelled()) => {
                if uploaded.is_none() {
                    holding.settle();
                }
            }
        }
    }
    sending.await
}
