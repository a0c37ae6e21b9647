//! Clusters of `neap up`: each is an API server of its own, with its own authority and address.
//!
//! A cluster keeps its address for ever, so that its kubeconfigs stay valid. Once all addresses are given away,
//! clusters share one and have ports of their own.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::{FutureExt, future::BoxFuture};
use kube::Client;
use neap_emulators::hive::{ClusterFactory, ClusterSpec, StartedCluster};
use neap_pocket::{
    Options, Pocket, Storage,
    environment::Environment,
    identity::{Certificates, Credentials, SigningKey},
    wire,
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio::{net::TcpListener, sync::Mutex};
use tokio_util::sync::CancellationToken;

use crate::up::{ConnectionLimits, private};

/// The port of the API of a cluster that has an address of its own.
const API_PORT: u16 = 6443;
/// The file in the folder of a cluster with the address of its API.
const ADDRESS_FILE: &str = "address";

/// The addresses that clusters may have.
#[derive(Debug)]
pub(super) struct ClusterAddresses {
    /// One for each cluster.
    pub(super) own: Vec<IpAddr>,
    /// For the clusters for which none is left.
    pub(super) shared: IpAddr,
}

/// Makes API servers in this process.
pub(super) struct PocketFactory {
    folder: PathBuf,
    addresses: ClusterAddresses,
    environment: Environment,
    /// Connections to the API server of each cluster. The share does not depend on how many clusters there
    /// are now, since a cluster keeps it.
    max_connections: usize,
    running: Mutex<HashMap<String, RunningCluster>>,
}

struct RunningCluster {
    cluster: StartedCluster,
    stop: CancellationToken,
    /// Cancelled when the server has closed its store, or its task was dropped.
    closed: CancellationToken,
}

/// The authority of a cluster, PEM.
pub(super) struct Authority {
    pub(super) certificate: String,
    pub(super) key: String,
}

type Problem = Box<dyn std::error::Error + Send + Sync>;

impl PocketFactory {
    /// Clusters whose files are in `folder`.
    pub(super) fn new(
        folder: PathBuf,
        addresses: ClusterAddresses,
        environment: Environment,
    ) -> Self {
        Self {
            folder,
            max_connections: ConnectionLimits::of_process().of_cluster(addresses.own.len()),
            addresses,
            environment,
            running: Mutex::default(),
        }
    }

    async fn open(&self, id: &str) -> Result<RunningCluster, Problem> {
        let folder = self.folder.join(id);
        private::create_folder(&folder)?;
        let authority = Authority::load_or_create(&folder)?;
        let socket = self.bind(id).await?;
        let address = socket.local_addr()?;
        private::write(&folder.join(ADDRESS_FILE), &address.to_string())?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(
            authority.certificate.as_bytes(),
        )?)?;
        let pocket = Pocket::open(Options {
            storage: Storage::Folder(folder.join("store")),
            root_ca: Some(authority.certificate.clone()),
            signing_key: Some(signing_key(&folder)?),
            port: address.port(),
            advertised: Some(address.to_string()),
            ..Options::new(self.environment.clone())
        })
        .await?;
        let client = Client::new(pocket.service(), "default");
        let credentials = Credentials {
            certificates: Some(Certificates::signed_by(
                roots.clone(),
                self.environment.clock.clone(),
            )?),
            ..Credentials::default()
        };
        let service = pocket
            .service()
            .authenticated_by(Arc::new(credentials))
            .with_max_connections(self.max_connections);
        let tls = authority.server(address.ip(), Some(roots))?;
        let (stop, closed) = (CancellationToken::new(), CancellationToken::new());
        let (stopped, closing) = (stop.clone().cancelled_owned(), closed.clone().drop_guard());
        let serving = async move {
            if let Err(error) = wire::serve(socket, tls, service, stopped).await {
                tracing::error!(%error, "a cluster is no longer served");
            }
            // The last sync may be slow.
            if let Err(error) = tokio::task::spawn_blocking(move || pocket.close()).await {
                tracing::error!(%error, "the store of a cluster was not closed cleanly");
            }
            drop(closing);
        };
        self.environment
            .spawner
            .spawn("fleet-cluster", Box::pin(serving));
        let cluster = StartedCluster {
            api_url: format!("https://{address}"),
            authority: authority.certificate.clone(),
            signer_certificate: authority.certificate,
            signer_key: authority.key,
            client,
        };
        Ok(RunningCluster {
            cluster,
            stop,
            closed,
        })
    }
}

impl PocketFactory {
    /// Listens on the address of the cluster: that of an earlier run, or the first that no cluster has.
    async fn bind(&self, id: &str) -> io::Result<TcpListener> {
        let given = self.given_addresses();
        if let Some(address) = given.get(id) {
            return TcpListener::bind(address).await;
        }
        let taken: HashSet<_> = given.values().map(SocketAddr::ip).collect();
        let free = self.addresses.own.iter().filter(|it| !taken.contains(it));
        for address in free {
            // Another program may listen there.
            if let Ok(socket) = TcpListener::bind((*address, API_PORT)).await {
                return Ok(socket);
            }
        }
        TcpListener::bind((self.addresses.shared, 0)).await
    }

    /// The addresses of all clusters that have a folder, by id.
    fn given_addresses(&self) -> HashMap<String, SocketAddr> {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let given = folders.filter_map(|entry| {
            let text = fs::read_to_string(entry.path().join(ADDRESS_FILE)).ok()?;
            let id = entry.file_name().into_string().ok()?;
            Some((id, text.trim().parse().ok()?))
        });
        given.collect()
    }
}

impl ClusterFactory for PocketFactory {
    fn start<'a>(&'a self, spec: &'a ClusterSpec) -> BoxFuture<'a, Result<StartedCluster, String>> {
        async move {
            let mut running = self.running.lock().await;
            if let Some(running) = running.get(&spec.id) {
                return Ok(running.cluster.clone());
            }
            let opened = self.open(&spec.id).await;
            let opened = opened.map_err(|error| error.to_string())?;
            let cluster = opened.cluster.clone();
            running.insert(spec.id.clone(), opened);
            Ok(cluster)
        }
        .boxed()
    }

    fn running<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Option<StartedCluster>> {
        async move {
            let running = self.running.lock().await;
            running.get(id).map(|running| running.cluster.clone())
        }
        .boxed()
    }

    fn destroy<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), String>> {
        async move {
            let tokens = |running: &RunningCluster| (running.stop.clone(), running.closed.clone());
            let running = self.running.lock().await.get(id).map(tokens);
            if let Some((stop, closed)) = running {
                stop.cancel();
                // A server that still writes would make files in the folder that is removed. It stays
                // known until then, so that a second call waits as well.
                closed.cancelled().await;
                self.running.lock().await.remove(id);
            }
            match fs::remove_dir_all(self.folder.join(id)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
                _ => Ok(()),
            }
        }
        .boxed()
    }
}

fn signing_key(folder: &Path) -> Result<SigningKey, Problem> {
    let file = folder.join("accounts.key");
    if let Ok(text) = fs::read_to_string(&file) {
        Ok(SigningKey::from_pem(&text)?)
    } else {
        let text = KeyPair::generate()?.serialize_pem();
        private::write(&file, &text)?;
        Ok(SigningKey::from_pem(&text)?)
    }
}

impl Authority {
    /// The authority in `folder`, which is made if it is missing.
    pub(super) fn load_or_create(folder: &Path) -> Result<Self, Problem> {
        let (certificate_file, key_file) = (folder.join("ca.crt"), folder.join("ca.key"));
        if let (Ok(certificate), Ok(key)) = (
            fs::read_to_string(&certificate_file),
            fs::read_to_string(&key_file),
        ) {
            return Ok(Self { certificate, key });
        }
        let mut parameters = CertificateParams::default();
        parameters
            .distinguished_name
            .push(DnType::CommonName, "neap-fleet");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        parameters.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let key = KeyPair::generate()?;
        let authority = Self {
            certificate: parameters.self_signed(&key)?.pem(),
            key: key.serialize_pem(),
        };
        private::write(&key_file, &authority.key)?;
        private::write(&certificate_file, &authority.certificate)?;
        Ok(authority)
    }

    /// A server at `address`, which recognises clients of `clients`.
    pub(super) fn server(
        &self,
        address: IpAddr,
        clients: Option<RootCertStore>,
    ) -> Result<Arc<ServerConfig>, Problem> {
        let issuer = Issuer::from_ca_cert_pem(&self.certificate, KeyPair::from_pem(&self.key)?)?;
        let mut parameters = CertificateParams::new(vec!["localhost".to_owned()])?;
        parameters
            .distinguished_name
            .push(DnType::CommonName, "neap-fleet-server");
        parameters
            .subject_alt_names
            .push(SanType::IpAddress(address));
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, &issuer)?;
        let builder = ServerConfig::builder();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(roots) => builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder(roots.into())
                    .allow_unauthenticated()
                    .build()?,
            ),
        };
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes())?;
        let mut config = builder.with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

#[cfg(test)]
mod tests;
