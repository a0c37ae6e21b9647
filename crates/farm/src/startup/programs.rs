//! The rules of each program.

use super::{Node, Rules, blobstore::StoreKind};
use crate::schema::duration;

impl Rules {
    pub(super) fn storage(&mut self, root: &Node<'_>) {
        self.grpc_servers(&root.get("grpcServers"));
        self.message_size(root);
        let has_cas = root.get("contentAddressableStorage").is_present();
        let stores = [
            ("contentAddressableStorage", StoreKind::Cas),
            ("indirectContentAddressableStorage", StoreKind::Cas),
            ("actionCache", StoreKind::ActionCache),
            ("initialSizeClassCache", StoreKind::Other),
            ("fileSystemAccessCache", StoreKind::Other),
        ];
        for (name, kind) in stores {
            let store = root.get(name);
            if store.is_absent() {
                continue;
            }
            self.backend(&store.get("backend"), kind, has_cas);
            let authorizers: &[_] = if kind == StoreKind::Cas {
                &["getAuthorizer", "putAuthorizer", "findMissingAuthorizer"]
            } else {
                &["getAuthorizer", "putAuthorizer"]
            };
            self.authorizers(&store, authorizers);
        }
        let schedulers = root.get("schedulers").entries();
        for (_, scheduler) in &schedulers {
            let address = scheduler.get("endpoint").get("address");
            if address.text().is_empty() {
                self.add(&address, "is required");
            }
        }
        if !schedulers.is_empty() {
            self.authorizers(root, &["executeAuthorizer"]);
        }
    }

    pub(super) fn scheduler(&mut self, root: &Node<'_>) {
        self.http_servers(&root.get("adminHttpServers"));
        for name in [
            "clientGrpcServers",
            "workerGrpcServers",
            "buildQueueStateGrpcServers",
        ] {
            self.grpc_servers(&root.get(name));
        }
        self.message_size(root);
        let authorizers = [
            "executeAuthorizer",
            "modifyDrainsAuthorizer",
            "killOperationsAuthorizer",
            "synchronizeAuthorizer",
        ];
        self.authorizers(root, &authorizers);
        self.backend(&root.get("contentAddressableStorage"), StoreKind::Cas, true);
        self.require(root, &["platformQueueWithNoWorkersTimeout"]);
        let has_size_classes = root.get("initialSizeClassCache").is_present();
        self.action_router(&root.get("actionRouter"), has_size_classes);
        let mut seen = std::collections::BTreeSet::new();
        for queue in root.get("predeclaredPlatformQueues").items() {
            self.size_classes(&queue.get("sizeClasses"));
            let prefix = queue.get("instanceNamePrefix").text().to_owned();
            if !seen.insert((prefix, queue.get("platform").value.to_string())) {
                self.add(&queue, "is a second queue of the same prefix and platform");
            }
        }
    }

    fn size_classes(&mut self, at: &Node<'_>) {
        let classes: Vec<_> = at.items().iter().map(Node::number).collect();
        if classes.is_empty() {
            self.add(at, "has to have at least one size class");
        }
        if classes.windows(2).any(|two| two[0] >= two[1]) {
            self.add(at, "has to be in ascending order, each size class once");
        }
        if classes.len() > 1 && classes.contains(&0) {
            self.add(at, "has to be positive where there are several");
        }
    }

    fn action_router(&mut self, router: &Node<'_>, has_size_classes: bool) {
        let Some(kind) = router.fields().into_iter().next() else {
            return self.add(router, "is required, with a kind such as \"simple\"");
        };
        if kind.path.ends_with(".simple") {
            let extractors = kind.get("invocationKeyExtractors").items();
            for extractor in extractors.iter().chain([&kind.get("platformKeyExtractor")]) {
                if extractor.fields().is_empty() {
                    self.add(extractor, "needs a kind");
                }
            }
        }
        for backend in kind.get("backends").items() {
            self.action_router(&backend.get("actionRouter"), has_size_classes);
        }
        let default = kind.get("defaultActionRouter");
        if default.is_present() {
            self.action_router(&default, has_size_classes);
        }
        if kind.path.ends_with(".demultiplexing") {
            return;
        }
        let analyzer = kind.get("initialSizeClassAnalyzer");
        if analyzer.is_absent() {
            return self.add(&analyzer, "is required");
        }
        self.require(
            &analyzer,
            &["defaultExecutionTimeout", "maximumExecutionTimeout"],
        );
        let time = |field| duration(analyzer.get(field).text());
        let (default, maximum) = (
            time("defaultExecutionTimeout"),
            time("maximumExecutionTimeout"),
        );
        if default
            .zip(maximum)
            .is_some_and(|(default, maximum)| default > maximum)
        {
            let at = analyzer.get("defaultExecutionTimeout");
            self.add(&at, "is longer than maximumExecutionTimeout");
        }
        if analyzer.get("feedbackDriven").is_present() && !has_size_classes {
            let at = analyzer.get("feedbackDriven");
            self.add(&at, "needs initialSizeClassCache");
        }
    }

    pub(super) fn worker(&mut self, root: &Node<'_>) {
        self.blobstore(&root.get("blobstore"));
        self.message_size(root);
        let address = root.get("scheduler").get("address");
        if address.text().is_empty() {
            self.add(&address, "is required");
        }
        for field in ["inputDownloadConcurrency", "outputUploadConcurrency"] {
            let concurrency = root.get(field);
            if concurrency.number() <= 0 {
                self.add(
                    &concurrency,
                    "nonpositive concurrency: has to be at least 1",
                );
            }
        }
        let cache = root.get("directoryCache");
        if cache.is_present() {
            self.policy(&cache);
        }
        let directories = root.get("buildDirectories");
        if directories.items().is_empty() {
            self.add(&directories, "has to have at least one build directory");
        }
        for directory in directories.items() {
            self.build_directory(&directory, root.get("filePool").is_present());
        }
    }

    fn build_directory(&mut self, directory: &Node<'_>, has_file_pool: bool) {
        let (native, virtual_) = (directory.get("native"), directory.get("virtual"));
        if native.is_present() {
            self.require(&native, &["buildDirectoryPath", "cacheDirectoryPath"]);
            self.policy(&native);
        } else if virtual_.is_present() {
            let required = [
                "mount",
                "maximumExecutionTimeoutCompensation",
                "maximumWritableFileUploadDelay",
            ];
            self.require(&virtual_, &required);
            if !has_file_pool {
                self.add(&virtual_, "needs filePool, or actions cannot write");
            }
        } else {
            self.add(directory, "needs native or virtual");
        }
        let runners = directory.get("runners");
        if runners.items().is_empty() {
            self.add(&runners, "has to have at least one runner");
        }
        for runner in runners.items() {
            let address = runner.get("endpoint").get("address");
            if address.text().is_empty() {
                self.add(&address, "is required");
            }
            if runner.get("concurrency").number() < 1 {
                self.add(&runner.get("concurrency"), "has to be at least 1");
            }
            if virtual_.is_present() {
                for quota in ["maximumFilePoolFileCount", "maximumFilePoolSizeBytes"] {
                    if runner.get(quota).number() == 0 {
                        self.add(&runner.get(quota), "is 0, so that actions cannot write");
                    }
                }
            }
        }
    }

    fn policy(&mut self, at: &Node<'_>) {
        let policy = at.get("cacheReplacementPolicy");
        if policy.is_absent() {
            let problem = "unknown cache replacement policy: use \"LEAST_RECENTLY_USED\"";
            self.add(&policy, problem);
        }
    }

    pub(super) fn runner(&mut self, root: &Node<'_>) {
        self.require(root, &["buildDirectoryPath"]);
        self.grpc_servers(&root.get("grpcServers"));
    }

    pub(super) fn browser(&mut self, root: &Node<'_>) {
        self.blobstore(&root.get("blobstore"));
        self.message_size(root);
        self.http_servers(&root.get("httpServers"));
        self.authorizers(root, &["authorizer"]);
        self.require(root, &["requestMetadataLinksJmespathExpression"]);
    }

    fn blobstore(&mut self, blobstore: &Node<'_>) {
        let cas = blobstore.get("contentAddressableStorage");
        self.backend(&cas, StoreKind::Cas, cas.is_present());
        let cache = blobstore.get("actionCache");
        self.backend(&cache, StoreKind::ActionCache, cas.is_present());
    }

    fn message_size(&mut self, root: &Node<'_>) {
        let size = root.get("maximumMessageSizeBytes");
        if size.number() <= 0 {
            self.add(&size, "has to be positive, and equal in all programs");
        }
    }
}
