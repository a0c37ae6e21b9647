//! Blobs that are written and read in parts.

use std::sync::Arc;

use tonic::{Status, Streaming};

use crate::remote_execution::{
    RemoteExecution,
    messages::{
        BlobDigest, QueryWriteStatusRequest, QueryWriteStatusResponse, ReadRequest, ReadResponse,
        WriteRequest, WriteResponse,
    },
    store::{MAX_BLOB_BYTES, valid},
};

/// The size of a part.
const PART_BYTES: usize = 64 << 10;

/// The digest of a resource: `[INSTANCE/]blobs/HASH/SIZE`, or for writes `[INSTANCE/]uploads/UUID/blobs/HASH/SIZE`.
/// What follows the size of a write is ignored, as the protocol says.
fn digest_of(resource: &str, is_write: bool) -> Result<BlobDigest, Status> {
    let wrong = || Status::invalid_argument(format!("{resource:?} is no name of a blob"));
    let parts: Vec<_> = resource.split('/').collect();
    let is_blob =
        |at: usize| parts[at] == "blobs" && (!is_write || (at >= 2 && parts[at - 2] == "uploads"));
    let at = (0..parts.len()).find(|at| is_blob(*at)).ok_or_else(wrong)?;
    let [hash, size, rest @ ..] = &parts[at + 1..] else {
        return Err(wrong());
    };
    if !is_write && !rest.is_empty() {
        return Err(wrong());
    }
    valid(Some(BlobDigest {
        hash: (*hash).to_owned(),
        size_bytes: size.parse().map_err(|_| wrong())?,
    }))
}

pub(super) async fn write(
    farm: Arc<RemoteExecution>,
    mut parts: Streaming<WriteRequest>,
) -> Result<WriteResponse, Status> {
    let mut written: Option<(BlobDigest, Vec<u8>)> = None;
    while let Some(part) = parts.message().await? {
        let (digest, content) = if let Some(written) = &mut written {
            written
        } else {
            let digest = digest_of(&part.resource_name, true)?;
            if farm.store.has(&digest) {
                // Another client was faster: the rest is not read.
                let committed_size = digest.size_bytes;
                return Ok(WriteResponse { committed_size });
            }
            written.insert((digest, Vec::new()))
        };
        if usize::try_from(part.write_offset) != Ok(content.len()) {
            let message = format!("the next part begins at {}", content.len());
            return Err(Status::invalid_argument(message));
        }
        if content.len() + part.data.len() > MAX_BLOB_BYTES {
            let message = format!("a blob has at most {MAX_BLOB_BYTES} bytes");
            return Err(Status::invalid_argument(message));
        }
        content.extend_from_slice(&part.data);
        if part.finish_write {
            let committed_size = content.len() as i64;
            farm.store.put(digest, std::mem::take(content).into())?;
            return Ok(WriteResponse { committed_size });
        }
    }
    Err(Status::invalid_argument("the write was not finished"))
}

impl RemoteExecution {
    /// The parts of a blob.
    pub(super) fn read(
        &self,
        request: &ReadRequest,
    ) -> Result<Vec<Result<ReadResponse, Status>>, Status> {
        let digest = digest_of(&request.resource_name, false)?;
        let content = self.store.get(&digest);
        let content = content.ok_or_else(|| Status::not_found("the blob is not there"))?;
        let begin = usize::try_from(request.read_offset).ok();
        let begin = begin.filter(|begin| *begin <= content.len());
        let begin = begin.ok_or_else(|| Status::out_of_range("the blob has no such offset"))?;
        let limit = match request.read_limit {
            0 => content.len(),
            limit => usize::try_from(limit)
                .map_err(|_| Status::invalid_argument("the limit is negative"))?,
        };
        let end = content.len().min(begin.saturating_add(limit));
        let starts = (begin..end).step_by(PART_BYTES);
        let parts = starts.map(|start| {
            let data = content.slice(start..end.min(start + PART_BYTES));
            Ok(ReadResponse { data })
        });
        Ok(parts.collect())
    }

    /// Nothing of a write is kept before its end.
    pub(super) fn write_status(
        &self,
        request: &QueryWriteStatusRequest,
    ) -> Result<QueryWriteStatusResponse, Status> {
        let digest = digest_of(&request.resource_name, true)?;
        let complete = self.store.has(&digest);
        Ok(QueryWriteStatusResponse {
            committed_size: if complete { digest.size_bytes } else { 0 },
            complete,
        })
    }
}
