//! gRPC with tonic, in all four kinds of call, against a sleeping service.

use std::{convert::Infallible, net::SocketAddr, pin::Pin};

use bytes::{Buf, BufMut};
use futures::{Stream, StreamExt, stream};
use http::{Request, Response, uri::PathAndQuery};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::{net::TcpListener, sync::mpsc};
use tonic::{
    Code, Status, Streaming,
    client::Grpc as GrpcClient,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    server::Grpc as GrpcServer,
    transport::{Channel, Endpoint},
};

use crate::fixture::ResolverFixture;

/// A codec whose messages are text.
#[derive(Clone, Copy, Default)]
struct Words;

impl Codec for Words {
    type Encode = String;
    type Decode = String;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Words {
    type Item = String;
    type Error = Status;

    fn encode(&mut self, item: String, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(item.as_bytes());
        Ok(())
    }
}

impl Decoder for Words {
    type Item = String;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<String>, Status> {
        let bytes = from.copy_to_bytes(from.remaining());
        let text = String::from_utf8(bytes.to_vec());
        text.map(Some).map_err(|_| Status::internal("not UTF-8"))
    }
}

type Answers = Pin<Box<dyn Stream<Item = Result<String, Status>> + Send>>;

/// `one: 1`, `one: 2`, `one: 3`.
fn three(word: &str) -> Answers {
    let words: Vec<_> = (1..=3)
        .map(|number| Ok(format!("{word}: {number}")))
        .collect();
    Box::pin(stream::iter(words))
}

async fn joined(words: Streaming<String>) -> Result<String, Status> {
    let words = words.map(|word| word.unwrap()).collect::<Vec<_>>().await;
    Ok(words.join(" "))
}

async fn answer(request: Request<Incoming>) -> Result<Response<tonic::body::Body>, Infallible> {
    let mut grpc = GrpcServer::new(Words);
    let path = request.uri().path().to_owned();
    Ok(match path.as_str() {
        "/shop.Cart/One" => {
            let one = tower::service_fn(|request: tonic::Request<String>| async move {
                let word = request.into_inner();
                if word == "missing" {
                    return Err(Status::not_found("no such word"));
                }
                Ok(tonic::Response::new(format!("hello {word}")))
            });
            grpc.unary(one, request).await
        }
        "/shop.Cart/Down" => {
            let down = tower::service_fn(|request: tonic::Request<String>| async move {
                Ok::<_, Status>(tonic::Response::new(three(request.get_ref())))
            });
            grpc.server_streaming(down, request).await
        }
        "/shop.Cart/Up" => {
            let up = tower::service_fn(|request: tonic::Request<Streaming<String>>| async move {
                joined(request.into_inner()).await.map(tonic::Response::new)
            });
            grpc.client_streaming(up, request).await
        }
        _ => {
            let both = tower::service_fn(|request: tonic::Request<Streaming<String>>| async move {
                let words = request.into_inner();
                let answers: Answers =
                    Box::pin(words.map(|word| word.map(|word| format!("hello {word}"))));
                Ok::<_, Status>(tonic::Response::new(answers))
            });
            grpc.streaming(both, request).await
        }
    })
}

async fn pod(fixture: &ResolverFixture) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tasks = fixture.tasks.clone();
    fixture.tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let serve = server.serve_connection(TokioIo::new(stream), service_fn(answer));
            tasks.spawn(async move {
                let _ = serve.await;
            });
        }
    });
    address
}

async fn client(fixture: &ResolverFixture) -> GrpcClient<Channel> {
    let address = format!("http://{}", fixture.address);
    let endpoint = Endpoint::from_shared(address).unwrap();
    let mut grpc = GrpcClient::new(endpoint.connect().await.unwrap());
    grpc.ready().await.unwrap();
    grpc
}

fn path(method: &'static str) -> PathAndQuery {
    PathAndQuery::from_static(method)
}

/// A unary call.
async fn one(mut client: GrpcClient<Channel>) {
    let request = tonic::Request::new("you".to_owned());
    let answer = client.unary(request, path("/shop.Cart/One"), Words).await;
    let answer = answer.unwrap();
    assert!(answer.metadata().contains_key("x-neaptide-cold-start"));
    assert_eq!(answer.into_inner(), "hello you");
}

/// A server-streaming call.
async fn down(mut client: GrpcClient<Channel>) {
    let request = tonic::Request::new("word".to_owned());
    let path = path("/shop.Cart/Down");
    let answer = client.server_streaming(request, path, Words).await.unwrap();
    let words = answer.into_inner().map(|word| word.unwrap());
    let words: Vec<_> = words.collect().await;
    assert_eq!(words, ["word: 1", "word: 2", "word: 3"]);
}

/// A client-streaming call.
async fn up(mut client: GrpcClient<Channel>) {
    // More than is read while a request is held.
    let long = "x".repeat(50_000);
    let words = stream::iter(["a".to_owned(), long.clone(), "b".to_owned()]);
    let request = tonic::Request::new(words);
    let path = path("/shop.Cart/Up");
    let answer = client.client_streaming(request, path, Words).await;
    assert_eq!(answer.unwrap().into_inner(), format!("a {long} b"));
}

/// A bidirectional call; each word is sent only after the one before was answered.
async fn both(mut client: GrpcClient<Channel>) {
    let (send, words) = mpsc::channel::<String>(1);
    let next =
        |mut words: mpsc::Receiver<String>| async move { Some((words.recv().await?, words)) };
    let request = tonic::Request::new(stream::unfold(words, next));
    send.send("first".to_owned()).await.unwrap();
    let path = path("/shop.Cart/Both");
    let answer = client.streaming(request, path, Words).await;
    let mut answers = answer.unwrap().into_inner();
    for word in ["first", "second", "third"] {
        if word != "first" {
            send.send(word.to_owned()).await.unwrap();
        }
        let answer = answers.message().await.unwrap().unwrap();
        assert_eq!(answer, format!("hello {word}"));
    }
    drop(send);
    assert_eq!(answers.message().await.unwrap(), None);
}

#[tokio::test]
async fn every_kind_of_call_waits_and_is_answered() {
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let client = async || client(&fixture).await;
    let calls = (
        one(client().await),
        down(client().await),
        up(client().await),
        both(client().await),
    );
    let wake = async {
        fixture.wait_until_waking(4).await;
        fixture.pods(&[pod(&fixture).await]);
    };
    tokio::join!(calls.0, calls.1, calls.2, calls.3, wake);
}

#[tokio::test]
async fn a_status_of_a_pod_is_forwarded_and_an_exceeded_deadline_may_be_retried() {
    let fixture = ResolverFixture::new("HTTP", &json!({"deadlineSeconds": 1}));
    let mut grpc = client(&fixture).await;
    let request = tonic::Request::new("you".to_owned());
    let answer = grpc.unary::<_, String, _>(request, path("/shop.Cart/One"), Words);
    let status = answer.await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    let message = status.message();
    assert!(
        message.starts_with("no pod of shop/cart accepted the request in time"),
        "{message}"
    );
    fixture.pods(&[pod(&fixture).await]);
    grpc.ready().await.unwrap();
    let request = tonic::Request::new("missing".to_owned());
    let answer = grpc.unary::<_, String, _>(request, path("/shop.Cart/One"), Words);
    let status = answer.await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(status.message(), "no such word");
}

/// A pod that accepts calls, and then hangs or closes the connection.
async fn bad_pod(fixture: &ResolverFixture, hangs: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tasks = fixture.tasks.clone();
    fixture.tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = service_fn(move |_: Request<Incoming>| async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                Err::<Response<tonic::body::Body>, _>(std::io::Error::other("broken"))
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let serve = server.serve_connection(TokioIo::new(stream), answer);
            tasks.spawn(async move {
                let _ = serve.await;
            });
        }
    });
    address
}

#[tokio::test]
async fn a_call_that_a_pod_may_have_processed_is_not_marked_as_retryable() {
    for (hangs, code) in [(true, Code::DeadlineExceeded), (false, Code::Unknown)] {
        let fixture = ResolverFixture::new("HTTP", &json!({"deadlineSeconds": 1}));
        fixture.pods(&[bad_pod(&fixture, hangs).await]);
        let mut grpc = client(&fixture).await;
        let request = tonic::Request::new("you".to_owned());
        let answer = grpc.unary::<_, String, _>(request, path("/shop.Cart/One"), Words);
        let status = answer.await.unwrap_err();
        assert_eq!(status.code(), code, "{status:?}");
    }
}
