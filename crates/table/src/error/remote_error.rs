use brisk_atomic_file::printable;

/// Why a table at a URL could not be read or written. Secrets in URLs are left out of messages.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum RemoteError {
    /// The URL cannot be that of a table. `problem` says what to write instead.
    #[error("{problem}", problem = printable(.problem))]
    Url { problem: String },
    /// A setting that the store does not know, or a value that it cannot have.
    #[error("the setting `{name}` {problem}", name = printable(.name), problem = printable(.problem))]
    Setting { name: String, problem: String },
    /// There is no object of that name.
    #[error("there is no such object; check the URL")]
    NotFound,
    /// There is no bucket, or container, of that name.
    #[error(
        "the server has no bucket {bucket}; create it, or check the URL and the address of the server, which AWS_ENDPOINT or its like sets",
        bucket = printable(.bucket)
    )]
    NoBucket { bucket: String },
    /// A URL that is not that of a file names a folder, and there is no index in it.
    #[error("there is no such index; a folder of shards has one, and the URL of a single table is that of its file")]
    NoIndex,
    /// No credentials were found where `problem` says. `help` is how to give them.
    #[error("no credentials were found: {problem}; {help}", problem = printable(.problem))]
    NoCredentials { problem: String, help: &'static str },
    /// The server refuses the credentials, which may have expired, or the time of the request, or they do not allow the request.
    /// `problem` is what the server says.
    #[error("the server refuses the request: {problem}; {help}", problem = printable(.problem))]
    Refused { problem: String, help: &'static str },
    /// The object was replaced while it was read.
    #[error("it was replaced while it was read: {problem}; open it again", problem = printable(.problem))]
    Changed { problem: String },
    /// The server sends nothing by which two versions of the object could be told apart, and it is too long for one request.
    #[error(
        "the server sends neither an ETag nor a time of modification, so that a file that is replaced while it is read could not be noticed, and its {n_bytes} bytes are too many for one request; copy it with another program and use the copy, or a server that sends one of them"
    )]
    Unnamed { n_bytes: u64 },
    /// The server sends the whole object when it is asked for a part.
    #[error("the server does not serve ranges of bytes; download the table and open the file, or use a server that does")]
    NoRanges,
    /// All attempts failed for as long as [`RemoteOptions::retry_for`](crate::RemoteOptions::retry_for) allows. `seconds` is the
    /// time they took, `last` what went wrong the last time, and `more` is
    /// [`RemoteOptions::more_retries`](crate::RemoteOptions::more_retries).
    #[error(
        "gave up after {attempts} attempts in {seconds} s; the last: {last}; check the server and the network, or allow more by {more}",
        last = printable(.last), more = printable(.more)
    )]
    GaveUp { attempts: u32, seconds: u64, last: String, more: String },
    /// The program was asked to stop while it waited for the server.
    #[error("the program was asked to stop while it waited for the server")]
    Stopped,
    /// The store can only be read.
    #[error("a table cannot be written by {scheme}; write it to s3:, gs: or az:, or to a path")]
    ReadOnly { scheme: &'static str },
    /// Another error of the server, or of the connection to it.
    #[error("{problem}", problem = printable(.problem))]
    Failed { problem: String },
}
