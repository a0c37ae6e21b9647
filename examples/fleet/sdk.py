"""Creates, reads, changes and deletes a cluster with azure-mgmt-redhatopenshift (4.0.0 or 2.0.0).

python3 sdk.py https://ADDRESS:8443 fleet-ca.crt
"""

import json
import os
import pathlib
import sys
import time

# It would override the authority that is given to the client.
os.environ.pop("REQUESTS_CA_BUNDLE", None)

from azure.core.credentials import AccessToken
from azure.mgmt.redhatopenshift import AzureRedHatOpenShiftClient

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"


class Anybody:
    """A credential: the provider of `neap up` accepts every caller."""

    def get_token(self, *scopes, **options):
        return AccessToken("none", int(time.time()) + 3600)


def main(url, authority):
    client = AzureRedHatOpenShiftClient(
        Anybody(),
        SUBSCRIPTION,
        base_url=url,
        credential_scopes=[url + "/.default"],
        connection_verify=authority,
        polling_interval=1,
    )
    clusters = client.open_shift_clusters
    text = pathlib.Path(__file__).with_name("cluster.json").read_text()
    body = json.loads(text.replace("blue", "sdk").replace("0000000000b1", "0000000000b2"))
    versions = [version.version for version in client.open_shift_versions.list("local")]
    print("versions", versions)
    started = time.monotonic()
    created = clusters.begin_create_or_update("fleet", "sdk", body).result()
    print("created", created.provisioning_state, round(time.monotonic() - started, 1), "s")
    assert created.provisioning_state == "Succeeded"
    assert clusters.get("fleet", "sdk").name == "sdk"
    assert [one.name for one in clusters.list()].count("sdk") == 1
    assert [one.name for one in clusters.list_by_resource_group("fleet")].count("sdk") == 1
    changed = clusters.begin_update("fleet", "sdk", {"tags": {"team": "red"}}).result()
    assert changed.tags == {"team": "red"}, changed.tags
    assert clusters.list_credentials("fleet", "sdk").kubeadmin_username == "kubeadmin"
    assert clusters.list_admin_credentials("fleet", "sdk").kubeconfig
    clusters.begin_delete("fleet", "sdk").result()
    assert "sdk" not in [one.name for one in clusters.list()]
    print("deleted")


main(*sys.argv[1:])
