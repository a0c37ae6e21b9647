//! The macro of the list of areas: what follows from it.

macro_rules! areas {
    ($($Variant:ident($Module:ty)),+ $(,)?) => {
        /// The registrations of all areas.
        pub(crate) fn all() -> impl Iterator<Item = Area> {
            [$(<$Module as AreaModule>::AREA),+].into_iter()
        }

        /// The commands of the areas.
        #[derive(Debug, Subcommand)]
        pub(crate) enum AreasCommand {
            $($Variant(<$Module as AreaModule>::Command)),+
        }

        impl AreasCommand {
            /// Runs the command.
            pub(crate) fn run(self, symbols: Symbols, out: &mut dyn Write) -> Result<(), Failure> {
                match self {
                    $(Self::$Variant(command) => command.run(symbols, out)),+
                }
            }

            /// The service name in logs and traces, for commands that a cluster runs.
            pub(crate) fn role(&self) -> Option<&'static str> {
                match self {
                    $(Self::$Variant(command) => command.role()),+
                }
            }
        }

        /// The flags of the areas for `neap up`, in the order of the list.
        #[derive(Debug, Args)]
        #[group(skip)]
        #[expect(non_snake_case, reason = "the names of the fields come from the list")]
        pub(crate) struct AreasUpOptions {
            $(
                #[command(flatten)]
                $Variant: <$Module as AreaModule>::UpOptions,
            )+
        }

        /// Adds to `neap up` what it runs of the areas.
        pub(crate) fn host(host: &mut Host<'_>, options: &AreasUpOptions) -> Result<(), Failure> {
            $(
                host.enter(&<$Module as AreaModule>::AREA);
                <$Module as AreaModule>::host(host, &options.$Variant)?;
            )+
            Ok(())
        }
    };
}
