use std::sync::Arc;

use kube::{Client, Config};
use neap_pocket::{
    Options, Pocket,
    environment::Environment,
    identity::{Credentials, Tokens},
    wire,
};
use rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivatePkcs8KeyDer};
use tokio::{net::TcpListener, sync::oneshot};

#[tokio::test]
async fn a_client_connects_over_tls() {
    // The clock is not paused: time passes as it does outside of the test.
    let environment = Environment::simulated(1);
    let pocket = Pocket::open(Options::new(environment)).await.unwrap();

    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let certificate = certified.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let tls = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();

    // Without this line every client has all permissions.
    let tokens = Tokens::parse("secret,alice,1,system:masters\n").unwrap();
    let service = pocket.service().authenticated_by(Arc::new(Credentials {
        certificates: None,
        tokens,
    }));

    let (stop, stopped) = oneshot::channel::<()>();
    let serving = wire::serve(listener, Arc::new(tls), service, async {
        let _ = stopped.await;
    });
    let asking = async {
        let mut config = Config::new(format!("https://{address}").parse().unwrap());
        config.root_cert = Some(vec![certificate.to_vec()]);
        config.auth_info.token = Some("secret".to_owned().into());
        let client = Client::try_from(config).unwrap();
        assert_eq!(client.apiserver_version().await.unwrap().minor, "36");
        drop((client, stop));
    };
    let (served, ()) = tokio::join!(serving, asking);
    served.unwrap();
}
