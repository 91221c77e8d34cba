use std::sync::Arc;

use object_store::ObjectStore;
#[cfg(feature = "s3")]
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
#[cfg(feature = "az")]
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
#[cfg(feature = "gs")]
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::multipart::MultipartStore;
use url::Url;

#[cfg(feature = "http")]
use super::failure::said;
use super::location::{Location, Scheme};
use super::options::RemoteOptions;
use super::retry::Heard;
#[cfg(feature = "http")]
use super::transport::{Connector, Redirects};
use crate::error::{Error, RemoteError};

/// A bucket, or the objects of a host.
#[derive(Clone)]
pub(super) struct Store {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// `None` if it can only be read.
    pub(super) parts: Option<Arc<dyn MultipartStore>>,
    /// The address of the server, if the URL does not name it.
    pub(super) endpoint: String,
}

/// The stores that were used, which keep connections and credentials.
#[derive(Default)]
pub(super) struct Stores {
    /// By what their URLs have in common, with secrets.
    connected: Vec<(Url, Store)>,
}

impl Stores {
    pub(super) fn connected(&mut self, location: &Location, options: &RemoteOptions, heard: &Heard) -> Result<Store, Error> {
        let base = location.base();
        if let Some((_, store)) = self.connected.iter().find(|(found, _)| *found == base) {
            return Ok(store.clone());
        }
        let store = connect(location, options, heard)?;
        self.connected.push((base, store.clone()));
        Ok(store)
    }
}

/// The prefixes of settings, and to which store they belong.
const PREFIXES: [(&str, Scheme); 3] = [("aws_", Scheme::S3), ("google_", Scheme::Gs), ("azure_", Scheme::Az)];

#[cfg_attr(not(feature = "http"), expect(unused_variables, reason = "no server is asked"))]
fn connect(location: &Location, options: &RemoteOptions, heard: &Heard) -> Result<Store, Error> {
    for (name, _) in &options.settings {
        if !PREFIXES.iter().any(|(prefix, _)| name.to_ascii_lowercase().starts_with(prefix)) {
            return Err(setting(location, name, "starts with none of aws_, google_ and azure_".to_owned()));
        }
    }
    match location.scheme {
        #[cfg(feature = "http")]
        Scheme::Http => http(location, options, heard),
        #[cfg(feature = "s3")]
        Scheme::S3 => s3(location, options, heard),
        #[cfg(feature = "gs")]
        Scheme::Gs => gs(location, options, heard),
        #[cfg(feature = "az")]
        Scheme::Az => az(location, options, heard),
        _ => Err(location.error(RemoteError::Url { problem: "is not of a server; open it as a file".to_owned() })),
    }
}

fn setting(location: &Location, name: &str, problem: String) -> Error {
    location.error(RemoteError::Setting { name: name.to_owned(), problem })
}

/// Failed requests are repeated by [`retrying`](super::retry::retrying), which knows the name of the object and what the server
/// said.
#[cfg(feature = "http")]
fn no_retries() -> object_store::RetryConfig {
    object_store::RetryConfig { max_retries: 0, ..object_store::RetryConfig::default() }
}

#[cfg(feature = "http")]
fn http(location: &Location, options: &RemoteOptions, heard: &Heard) -> Result<Store, Error> {
    let mut base = location.base();
    // They cannot fail: the URL has a host.
    _ = base.set_username("");
    _ = base.set_password(None);
    let client = object_store::ClientOptions::new().with_allow_http(true);
    let built = object_store::http::HttpBuilder::new()
        .with_url(base)
        .with_retry(no_retries())
        .with_client_options(client)
        .with_http_connector(Connector::new(options, Redirects::Followed, location.user(), heard.clone()))
        .build();
    let built = built.map_err(|error| location.error(RemoteError::Url { problem: said(&error.to_string()) }))?;
    Ok(Store { objects: Arc::new(built), parts: None, endpoint: String::new() })
}

/// The settings of one store, by their keys.
#[cfg(any(feature = "s3", feature = "gs", feature = "az"))]
fn settings_of<K: std::str::FromStr>(location: &Location, options: &RemoteOptions) -> Result<Vec<(K, String)>, Error> {
    let is_ours = |name: &str| {
        PREFIXES.iter().any(|(prefix, scheme)| *scheme == location.scheme && name.to_ascii_lowercase().starts_with(prefix))
    };
    let ours = options.settings.iter().filter(|(name, _)| is_ours(name));
    let parsed = ours.map(|(name, value)| match name.to_ascii_lowercase().parse() {
        Ok(key) => Ok((key, value.clone())),
        Err(_) => Err(setting(location, name, format!("is not one of {} stores", location.scheme.name()))),
    });
    parsed.collect()
}

/// Builds a store from its environment variables and the settings of `options`.
#[cfg(any(feature = "s3", feature = "gs", feature = "az"))]
macro_rules! cloud {
    ($name:ident, $Builder:path, $Key:path, $endpoint:expr $(, $more:ident($value:expr))*) => {
        fn $name(location: &Location, options: &RemoteOptions, heard: &Heard) -> Result<Store, Error> {
            let mut builder = <$Builder>::from_env()
                .with_url(format!("{}//{}", location.scheme.name(), location.host()))
                .with_retry(no_retries())
                .with_http_connector(Connector::new(options, Redirects::Returned, None, heard.clone()))
                $(.$more($value))*;
            for (key, value) in settings_of::<$Key>(location, options)? {
                builder = builder.with_config(key, value);
            }
            let endpoint = $endpoint.and_then(|key| builder.get_config_value(&key)).unwrap_or_default();
            let built = builder.build().map_err(|error| {
                location.error(RemoteError::NoCredentials { problem: said(&error.to_string()), help: location.scheme.help() })
            })?;
            let built = Arc::new(built);
            Ok(Store { objects: built.clone(), parts: Some(built), endpoint })
        }
    };
}

// Single deletions, which every server that speaks the protocol has.
#[cfg(feature = "s3")]
cloud!(s3, AmazonS3Builder, AmazonS3ConfigKey, Some(AmazonS3ConfigKey::Endpoint), with_disable_bulk_delete(true));
#[cfg(feature = "gs")]
cloud!(gs, GoogleCloudStorageBuilder, GoogleConfigKey, Some(GoogleConfigKey::BaseUrl));
#[cfg(feature = "az")]
cloud!(az, MicrosoftAzureBuilder, AzureConfigKey, Some(AzureConfigKey::AccountName));
