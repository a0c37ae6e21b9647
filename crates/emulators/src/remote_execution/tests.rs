//! Clients and workers over gRPC, under the paused clock.

use std::{collections::BTreeMap, time::Duration};

use futures::StreamExt;
use tonic::Code;

use super::{
    client::{RemoteExecutionClient, WorkerClient, violations},
    messages::*,
    *,
};
use crate::{
    build_queue::{Platform, Property, SizeClassQueueName},
    system::Emulator,
};

const V2: &str = "build.bazel.remote.execution.v2";
const FIND_MISSING: &str =
    "/build.bazel.remote.execution.v2.ContentAddressableStorage/FindMissingBlobs";
const READ_BLOBS: &str =
    "/build.bazel.remote.execution.v2.ContentAddressableStorage/BatchReadBlobs";
const GET_TREE: &str = "/build.bazel.remote.execution.v2.ContentAddressableStorage/GetTree";
const EXECUTE: &str = "/build.bazel.remote.execution.v2.Execution/Execute";
const WAIT: &str = "/build.bazel.remote.execution.v2.Execution/WaitExecution";
const GET_RESULT: &str = "/build.bazel.remote.execution.v2.ActionCache/GetActionResult";
const UPDATE_RESULT: &str = "/build.bazel.remote.execution.v2.ActionCache/UpdateActionResult";

#[derive(Clone, PartialEq, prost::Message)]
struct AddOrRemoveDrainRequest {
    #[prost(message, optional, tag = "1")]
    size_class_queue_name: Option<SizeClassQueueName>,
    #[prost(btree_map = "string, string", tag = "2")]
    worker_id_pattern: BTreeMap<String, String>,
}

struct TestFarm {
    farm: Emulator<RemoteExecution>,
    client: RemoteExecutionClient,
    clock: Clock,
}

fn farm() -> TestFarm {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let farm = Emulator::new(RemoteExecution::new(clock), clock);
    let client = RemoteExecutionClient::new(farm.transport());
    TestFarm {
        farm,
        client,
        clock,
    }
}

fn linux() -> Platform {
    let property = |name: &str, value: &str| Property {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    Platform {
        properties: vec![property("ISA", "x86"), property("OSFamily", "linux")],
    }
}

fn queue() -> SizeClassQueueName {
    SizeClassQueueName::of_platform(&[("ISA", "x86"), ("OSFamily", "linux")])
}

fn id(pod: &str) -> WorkerId {
    BTreeMap::from([("pod".to_owned(), pod.to_owned())])
}

impl TestFarm {
    /// A worker that the scheduler knows.
    fn worker(&self, pod: &str) -> WorkerClient {
        self.farm
            .system()
            .build_queue()
            .register(&queue(), id(pod), None);
        WorkerClient::new(self.client.clone(), queue(), id(pod))
    }

    async fn action(&self, argument: &str) -> BlobDigest {
        let arguments = ["run", argument];
        let action = self.client.upload_action(&arguments, linux());
        action.await.unwrap()
    }
}

fn wanted(action: &BlobDigest) -> ExecuteRequest {
    ExecuteRequest {
        action_digest: Some(action.clone()),
        ..ExecuteRequest::default()
    }
}

#[tokio::test(start_paused = true)]
async fn an_action_goes_from_a_client_to_a_worker_and_its_result_back() {
    let test = farm();
    let (worker, action) = (test.worker("a"), test.action("one").await);
    let mut updates = test
        .client
        .stream::<_, LongRunningOperation>(EXECUTE, wanted(&action))
        .await
        .unwrap();
    let queued = updates.next().await.unwrap().unwrap();
    assert_eq!((queued.stage(), queued.done), (Some(stage::QUEUED), false));
    let order = worker.next().await.unwrap().unwrap();
    assert_eq!(order.action_digest.as_ref(), Some(&action));
    let command = order.action.unwrap().command_digest.unwrap();
    let command: BuildCommand =
        prost::Message::decode(test.farm.system().blob(&command).unwrap()).unwrap();
    assert_eq!(command.arguments, ["run", "one"]);
    let executing = updates.next().await.unwrap().unwrap();
    assert_eq!(executing.stage(), Some(stage::EXECUTING));
    // The answer was lost: the worker gets the same action again.
    let again = worker.next().await.unwrap().unwrap();
    assert_eq!(again.action_digest.as_ref(), Some(&action));
    let going_on = worker.keep_running(&action).await.unwrap();
    assert_eq!(going_on.desired_state, None);
    worker.complete(&action, 3).await.unwrap();
    let done = updates.next().await.unwrap().unwrap();
    let response = done.response().unwrap();
    assert_eq!((done.done, response.result.unwrap().exit_code), (true, 3));
    assert!(updates.next().await.is_none(), "the stream ends");
    let wait = WaitExecutionRequest { name: done.name };
    let mut waited = test
        .client
        .stream::<_, LongRunningOperation>(WAIT, wait)
        .await
        .unwrap();
    assert!(waited.next().await.unwrap().unwrap().done);
}

#[tokio::test(start_paused = true)]
async fn a_drained_worker_gets_nothing_until_its_drain_ends() {
    let test = farm();
    let (worker, action) = (test.worker("a"), test.action("one").await);
    let drain = |pod: &str| AddOrRemoveDrainRequest {
        size_class_queue_name: Some(queue()),
        worker_id_pattern: id(pod),
    };
    let add = "/buildbarn.buildqueuestate.BuildQueueState/AddDrain";
    let remove = "/buildbarn.buildqueuestate.BuildQueueState/RemoveDrain";
    let _: () = test.client.call(add, drain("a")).await.unwrap();
    let begun = test.clock.uptime();
    let (executed, ()) = tokio::join!(test.client.execute(action.clone()), async {
        assert_eq!(worker.next().await.unwrap(), None);
        assert_eq!(test.clock.uptime(), begun + Duration::from_mins(2));
        // It waits, and gets the action as soon as it may.
        let (order, ()) = tokio::join!(worker.next(), async {
            test.clock.sleep(Duration::from_secs(5)).await;
            let _: () = test.client.call(remove, drain("a")).await.unwrap();
        });
        assert_eq!(order.unwrap().unwrap().action_digest, Some(action.clone()));
        // A drain does not end what runs.
        let _: () = test.client.call(add, drain("a")).await.unwrap();
        worker.complete(&action, 0).await.unwrap();
    });
    assert_eq!(executed.unwrap().result.unwrap().exit_code, 0);
}

#[tokio::test(start_paused = true)]
async fn missing_blobs_are_named_as_the_protocol_says() {
    let test = farm();
    test.worker("a");
    let absent = BlobDigest::of(b"never uploaded");
    let subject = |digest: &BlobDigest| format!("blobs/{}/{}", digest.hash, digest.size_bytes);
    let directory = InputDirectory {
        files: vec![FileNode {
            name: "a.c".to_owned(),
            digest: Some(absent.clone()),
            ..FileNode::default()
        }],
        ..InputDirectory::default()
    };
    let directory = prost::Message::encode_to_vec(&directory);
    let action = BuildAction {
        command_digest: Some(BlobDigest::of(b"nor this")),
        input_root_digest: Some(test.client.upload(directory).await.unwrap()),
        ..BuildAction::default()
    };
    let action = prost::Message::encode_to_vec(&action);
    for (action, expected) in [
        (absent.clone(), vec![subject(&absent)]),
        (
            test.client.upload(action).await.unwrap(),
            vec![subject(&BlobDigest::of(b"nor this")), subject(&absent)],
        ),
    ] {
        let status = test.client.execute(action).await.unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        let mut named: Vec<_> = violations(&status)
            .into_iter()
            .map(|it| (it.r#type, it.subject))
            .collect();
        named.sort();
        let mut expected: Vec<_> = expected
            .into_iter()
            .map(|subject| ("MISSING".to_owned(), subject))
            .collect();
        expected.sort();
        assert_eq!(named, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_action_that_no_pool_can_execute_is_refused() {
    let test = farm();
    let action = test.action("one").await;
    let status = test.client.execute(action.clone()).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    let expected =
        "No workers exist for instance name prefix \"\" platform {ISA=x86, OSFamily=linux}";
    assert_eq!(status.message(), expected);
    let mut unsorted = linux();
    unsorted.properties.reverse();
    let action = test.client.upload_action(&["run"], unsorted);
    let status = test.client.execute(action.await.unwrap()).await;
    assert_eq!(status.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test(start_paused = true)]
async fn actions_of_a_worker_that_ends_fail_and_may_be_tried_again() {
    let test = farm();
    let (worker, action) = (test.worker("a"), test.action("one").await);
    let (executed, ()) = tokio::join!(test.client.execute(action.clone()), async {
        worker.next().await.unwrap().unwrap();
    });
    let status = executed.unwrap().status.unwrap();
    assert_eq!(
        Code::from(status.code),
        Code::Unavailable,
        "{}",
        status.message
    );
    let other = test.worker("b");
    let (executed, ()) = tokio::join!(test.client.execute(action.clone()), async {
        other.next().await.unwrap().unwrap();
        other.complete(&action, 0).await.unwrap();
    });
    assert_eq!(executed.unwrap().status, None);
    let (executed, ()) = tokio::join!(test.client.execute(test.action("two").await), async {
        other.next().await.unwrap().unwrap();
        test.farm.system().restart();
    });
    assert_eq!(executed.unwrap_err().code(), Code::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn equal_actions_are_executed_once_and_then_come_from_the_cache() {
    let test = farm();
    let (worker, action) = (test.worker("a"), test.action("one").await);
    let (one, two, ()) = tokio::join!(
        test.client.execute(action.clone()),
        test.client.execute(action.clone()),
        async {
            test.clock.sleep(Duration::from_secs(1)).await;
            worker.next().await.unwrap().unwrap();
            worker.complete(&action, 0).await.unwrap();
            assert_eq!(worker.next().await.unwrap(), None, "there is no second one");
        }
    );
    assert_eq!(one.unwrap(), two.unwrap());
    let output = test.client.upload("output").await.unwrap();
    let result = ActionResult {
        stdout_digest: Some(output),
        ..ActionResult::default()
    };
    let update = UpdateActionResultRequest {
        action_digest: Some(action.clone()),
        action_result: Some(result.clone()),
        ..UpdateActionResultRequest::default()
    };
    let _: ActionResult = test.client.call(UPDATE_RESULT, update).await.unwrap();
    let cached = test.client.execute(action.clone()).await.unwrap();
    assert_eq!((cached.cached_result, cached.result), (true, Some(result)));
}

#[tokio::test(start_paused = true)]
async fn a_result_whose_outputs_are_gone_is_not_found() {
    let test = farm();
    let action = test.action("one").await;
    let get = GetActionResultRequest {
        action_digest: Some(action.clone()),
        ..GetActionResultRequest::default()
    };
    let update = UpdateActionResultRequest {
        action_digest: Some(action),
        action_result: Some(ActionResult {
            stdout_digest: Some(BlobDigest::of(b"never uploaded")),
            ..ActionResult::default()
        }),
        ..UpdateActionResultRequest::default()
    };
    let _: ActionResult = test.client.call(UPDATE_RESULT, update).await.unwrap();
    let found = test.client.call::<_, ActionResult>(GET_RESULT, get).await;
    assert_eq!(found.unwrap_err().code(), Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn blobs_are_found_read_and_refused_under_a_wrong_digest() {
    let test = farm();
    let here = test.client.upload("here").await.unwrap();
    let absent = BlobDigest::of(b"absent");
    let find = FindMissingBlobsRequest {
        blob_digests: vec![here.clone(), absent.clone(), BlobDigest::of(b"")],
        ..FindMissingBlobsRequest::default()
    };
    let found: FindMissingBlobsResponse = test.client.call(FIND_MISSING, find).await.unwrap();
    assert_eq!(found.missing_blob_digests, std::slice::from_ref(&absent));
    let read = BatchReadBlobsRequest {
        digests: vec![here.clone(), absent],
        ..BatchReadBlobsRequest::default()
    };
    let read: BatchReadBlobsResponse = test.client.call(READ_BLOBS, read).await.unwrap();
    let codes = read
        .responses
        .iter()
        .map(|it| it.status.as_ref().unwrap().code);
    assert_eq!(codes.collect::<Vec<_>>(), [0, Code::NotFound.into()]);
    assert_eq!(read.responses[0].data, "here");
    let wrong = write(&here, &["other".as_bytes()]);
    let path = "/google.bytestream.ByteStream/Write";
    assert!(
        test.client
            .send_all::<_, WriteResponse>(path, wrong)
            .await
            .is_ok(),
        "it is there"
    );
    let wrong = write(&BlobDigest::of(b"third"), &["other".as_bytes()]);
    let refused = test.client.send_all::<_, WriteResponse>(path, wrong).await;
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
}

/// The parts of a write.
fn write(digest: &BlobDigest, parts: &[&[u8]]) -> Vec<WriteRequest> {
    let name = format!(
        "main/uploads/0-0/blobs/{}/{}",
        digest.hash, digest.size_bytes
    );
    let mut offset = 0;
    let count = parts.len();
    let parts = parts.iter().enumerate().map(|(number, part)| {
        let request = WriteRequest {
            resource_name: if number == 0 {
                name.clone()
            } else {
                String::new()
            },
            write_offset: offset,
            finish_write: number + 1 == count,
            data: part.to_vec().into(),
        };
        offset += part.len() as i64;
        request
    });
    parts.collect()
}

#[tokio::test(start_paused = true)]
async fn large_blobs_are_written_and_read_in_parts() {
    let test = farm();
    let content: Vec<u8> = (0..200_000_u32).map(|it| (it % 251) as u8).collect();
    let digest = BlobDigest::of(&content);
    let parts: Vec<_> = content.chunks(70_000).collect();
    let path = "/google.bytestream.ByteStream/Write";
    let written: WriteResponse = test
        .client
        .send_all(path, write(&digest, &parts))
        .await
        .unwrap();
    assert_eq!(written.committed_size, 200_000);
    for (offset, limit) in [(0, 0), (150_000, 10_000), (200_000, 0)] {
        let read = ReadRequest {
            resource_name: format!("main/blobs/{}/{}", digest.hash, digest.size_bytes),
            read_offset: offset,
            read_limit: limit,
        };
        let path = "/google.bytestream.ByteStream/Read";
        let mut parts = test
            .client
            .stream::<_, ReadResponse>(path, read)
            .await
            .unwrap();
        let mut read = Vec::new();
        while let Some(part) = parts.next().await {
            read.extend_from_slice(&part.unwrap().data);
        }
        let end = if limit == 0 {
            content.len()
        } else {
            (offset + limit) as usize
        };
        assert!(read == content[offset as usize..end], "from {offset}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tree_comes_in_pages_with_each_directory_once() {
    let test = farm();
    let leaf = test
        .client
        .upload(prost::Message::encode_to_vec(&InputDirectory {
            files: vec![FileNode {
                name: "empty".to_owned(),
                digest: Some(BlobDigest::of(b"")),
                ..FileNode::default()
            }],
            ..InputDirectory::default()
        }));
    let leaf = leaf.await.unwrap();
    let inside = |name: &str| DirectoryNode {
        name: name.to_owned(),
        digest: Some(leaf.clone()),
    };
    let root = InputDirectory {
        directories: vec![inside("a"), inside("b")],
        ..InputDirectory::default()
    };
    let root = test.client.upload(prost::Message::encode_to_vec(&root));
    let request = GetTreeRequest {
        root_digest: Some(root.await.unwrap()),
        page_size: 1,
        ..GetTreeRequest::default()
    };
    let mut pages = test
        .client
        .stream::<_, GetTreeResponse>(GET_TREE, request)
        .await
        .unwrap();
    let mut names = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.unwrap();
        assert_eq!(page.directories.len(), 1);
        names.push(page.next_page_token);
    }
    assert_eq!(names, ["1", ""]);
}

#[tokio::test(start_paused = true)]
async fn the_server_says_what_it_can_do_and_what_it_cannot() {
    let test = farm();
    let path = "/build.bazel.remote.execution.v2.Capabilities/GetCapabilities";
    let all: ServerCapabilities = test
        .client
        .call(path, GetCapabilitiesRequest::default())
        .await
        .unwrap();
    let cache = all.cache_capabilities.unwrap();
    assert!(all.execution_capabilities.unwrap().exec_enabled);
    assert_eq!(cache.digest_functions, [SHA256]);
    let path = "/build.bazel.remote.execution.v2.ContentAddressableStorage/SplitBlob";
    let refused = test.client.call::<(), ()>(path, ()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    assert!(refused.message().contains(V2), "{refused}");
}
