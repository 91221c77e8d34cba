//! Writing objects: small ones at once, large ones in parts.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStoreExt, PutPayload};

use super::at_once::at_once;
use super::failure::Failure;
use super::location::Location;
use super::retry::Wait;
use super::session::{Remote, Session};
use super::store::Store;
use crate::error::{Error, RemoteError};
use crate::lock::{lock, unlocked};

/// The length of a part. Stores require at least 5 MiB, and at most 10,000 parts.
const PART_BYTES: u64 = 8 << 20;
const MAX_PARTS: u64 = 10_000;

/// Parts at a time: each is in memory.
const N_AT_ONCE: usize = 4;

/// Writes a whole object, which replaces one of this name. Web servers may refuse it.
pub(crate) fn put_bytes(location: &Location, remote: &Remote, bytes: Vec<u8>) -> Result<(), Error> {
    let upload = Upload::to(location, remote)?;
    let payload = PutPayload::from(bytes);
    upload.send(|store, object| {
        let payload = payload.clone();
        async move { store.objects.put(&object, payload).await.map(drop) }
    })
}

/// Copies a file to an object, which appears when all of it was written. Web servers may refuse it.
pub(crate) fn put_file(location: &Location, remote: &Remote, path: &Path) -> Result<(), Error> {
    let failed = |cause| Error::Io { path: path.to_owned(), action: "read", cause };
    let file = File::open(path).map_err(failed)?;
    let n_bytes = file.metadata().map_err(failed)?.len();
    let upload = Upload::to(location, remote)?;
    if n_bytes <= PART_BYTES || upload.store.parts.is_none() {
        let mut bytes = Vec::new();
        (&file).read_to_end(&mut bytes).map_err(failed)?;
        return put_bytes(location, remote, bytes);
    }
    let id = upload.send(|store, object| {
        let parts = store.parts.expect("it was checked to be there");
        async move { parts.create_multipart(&object).await }
    })?;
    let written = upload.parts(&id, Parts::of(file, n_bytes), failed).and_then(|parts| upload.complete(&id, parts));
    if written.is_err() {
        // What cannot be removed now is removed by the rules of the bucket, if it has some.
        let (store, object, id) = (upload.store.clone(), upload.object.clone(), id.clone());
        _ = upload.session.runtime.wait(&Wait::default(), async move { abort(store.parts, &object, &id).await }, || ());
    }
    written
}

/// Removes an object. It is no error if there is none.
pub(crate) fn delete(location: &Location, remote: &Remote) -> Result<(), Error> {
    let deleted = Upload::to(location, remote)?.send(|store, object| async move { store.objects.delete(&object).await });
    match deleted {
        Err(Error::Remote { reason: RemoteError::NotFound, .. }) => Ok(()),
        deleted => deleted,
    }
}

/// The names of the objects in the folder of an object, and when they were last modified.
pub(crate) fn list_beside(location: &Location, remote: &Remote) -> Result<Vec<(String, SystemTime)>, Error> {
    let listed = Upload::to(location, remote)?.send(|store, object| async move {
        let n_parents = object.parts().count().saturating_sub(1);
        let folder = ObjectPath::from_iter(object.parts().take(n_parents));
        store.objects.list_with_delimiter(Some(&folder)).await
    })?;
    let objects = listed.objects.into_iter();
    Ok(objects.filter_map(|found| Some((found.location.filename()?.to_owned(), found.last_modified.into()))).collect())
}

async fn abort(parts: Option<Arc<dyn MultipartStore>>, object: &ObjectPath, id: &String) -> object_store::Result<()> {
    match parts {
        Some(parts) => parts.abort_multipart(object, id).await,
        None => Ok(()),
    }
}

struct Upload<'a> {
    session: &'a Session,
    location: &'a Location,
    store: Store,
    object: ObjectPath,
}

impl<'a> Upload<'a> {
    fn to(location: &'a Location, remote: &'a Remote) -> Result<Self, Error> {
        let (store, object) = remote.session.store_of(location)?;
        Ok(Self { session: &remote.session, location, store, object })
    }

    fn send<T, F>(&self, request: impl Fn(Store, ObjectPath) -> F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        let sent = self.session.send(self.location, || {
            let (request, location) = (request(self.store.clone(), self.object.clone()), self.location.clone());
            async move { request.await.map_err(|error| Failure::of(&error, &location)) }
        });
        sent.map_err(|ended| ended.error(self.location))
    }

    /// Sends all parts, several at a time.
    fn parts(&self, id: &str, parts: Parts, failed: impl Fn(io::Error) -> Error + Sync) -> Result<Vec<PartId>, Error> {
        let sent = Mutex::new(Vec::new());
        at_once(parts, N_AT_ONCE.min(self.session.options.parallel), |part| {
            let (number, bytes) = part.map_err(&failed)?;
            let part = self.part(id, number, bytes)?;
            lock(&sent).push(part);
            Ok(())
        })?;
        let mut sent = unlocked(sent);
        sent.sort_by_key(|(number, _)| *number);
        Ok(sent.into_iter().map(|(_, part)| part).collect())
    }

    fn part(&self, id: &str, number: usize, bytes: Vec<u8>) -> Result<(usize, PartId), Error> {
        let payload = PutPayload::from(bytes);
        let part = self.send(|store, object| {
            let (id, payload) = (id.to_owned(), payload.clone());
            let parts = store.parts.expect("it was checked to be there");
            async move { parts.put_part(&object, &id, number, payload).await }
        })?;
        Ok((number, part))
    }

    fn complete(&self, id: &str, sent: Vec<PartId>) -> Result<(), Error> {
        self.send(|store, object| {
            let (id, sent) = (id.to_owned(), sent.clone());
            let parts = store.parts.expect("it was checked to be there");
            async move { parts.complete_multipart(&object, &id, sent).await.map(drop) }
        })
    }
}

/// The parts of a file, in order.
struct Parts {
    file: File,
    part_bytes: u64,
    n_left: u64,
    number: usize,
}

impl Parts {
    fn of(file: File, n_bytes: u64) -> Self {
        Self { file, part_bytes: PART_BYTES.max(n_bytes.div_ceil(MAX_PARTS)), n_left: n_bytes, number: 0 }
    }
}

impl Iterator for Parts {
    type Item = io::Result<(usize, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.n_left == 0 {
            return None;
        }
        let mut bytes = vec![0; self.n_left.min(self.part_bytes) as usize];
        self.n_left -= bytes.len() as u64;
        self.number += 1;
        let number = self.number - 1;
        Some(self.file.read_exact(&mut bytes).map(|()| (number, bytes)))
    }
}
