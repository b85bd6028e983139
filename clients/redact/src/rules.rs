//! The kinds of secrets, and their patterns.
//!
//! The patterns of providers' tokens follow the rules of gitleaks (MIT License, Copyright (c) 2019 Zachary Rice;
//! `config/gitleaks.toml` at its commit b58d3f10), with lengths as the providers document them.

/// A kind of secret.
pub(super) struct Rule {
    pub kind: &'static str,
    /// Texts that every secret of this kind contains. Each occurrence is checked.
    pub literals: &'static [&'static str],
    /// A pattern that begins where the secret begins. The secret is group 1, or the whole match if there is no group.
    ///
    /// A repetition without an upper limit must not match text in which the rule can begin again. Otherwise hostile
    /// text would take quadratic time.
    pub pattern: &'static str,
    pub start: Start,
    pub end: End,
    pub check: Check,
}

/// Where a secret begins, relative to its literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// At the literal, which must not follow a letter, a digit or an underscore.
    Word,
    /// At the literal, which must not follow a character of base64url.
    Token,
    /// At the literal, anywhere.
    Anywhere,
    /// At this number of bytes before the literal.
    Before(usize),
    /// At the digits before the literal.
    Digits,
}

/// Where a secret may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Not before a letter, a digit or an underscore.
    Word,
    /// Anywhere. The secret includes all characters of base64url that follow.
    Run,
    Anywhere,
}

/// A condition on a match that its pattern cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    Nothing,
    /// The match has a digit, unlike words.
    Digit,
    /// The match is a URL with credentials and without variables of a template. The credentials are the secret.
    Url,
    /// The match is the name of the first parameter of a header. The secret is all parameters.
    Parameters,
    /// Like `Parameters`, for a scheme that may be a word of a sentence: one parameter must look like a secret.
    SomeParameters,
    /// The match is the name of the first cookie. The secret is all cookies.
    Cookies,
    /// Lines of a private key follow. The secret includes them.
    KeyBlock,
}

macro_rules! rules {
    ($($kind:literal $start:ident $(($count:literal))? $end:ident $check:ident [$($literal:literal)+] $pattern:literal;)+) => {
        pub(super) const RULES: &[Rule] = &[$(Rule {
            kind: $kind,
            literals: &[$($literal),+],
            pattern: $pattern,
            start: Start::$start $(($count))?,
            end: End::$end,
            check: Check::$check,
        }),+];
    };
}

rules! {
    "anthropic-key" Word Run Nothing ["sk-ant-"] r"sk-ant-[a-z]{2,8}[0-9]{2}-[A-Za-z0-9_-]{20,250}";
    "openai-key" Word Run Digit ["sk-proj-" "sk-svcacct-" "sk-admin-"] r"sk-[a-z]{4,8}-[A-Za-z0-9_-]{20,250}";
    "openrouter-key" Word Run Nothing ["sk-or-v1-"] r"sk-or-v1-[0-9a-f]{64}";
    "openai-key" Word Run Digit ["sk-"] r"sk-[A-Za-z0-9]{32,200}";
    "aws-access-key" Word Word Nothing ["AKIA" "ASIA" "ABIA" "ACCA"] r"A[A-Z]{3}[A-Z0-9]{16}";
    "aws-secret-key" Anywhere Anywhere Nothing ["ecret_access_key" "ECRET_ACCESS_KEY" "ecretAccessKey" "ws_secret_key" "WS_SECRET_KEY"]
        r#"[A-Za-z_]{10,20}["'\\]{0,4}[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,8}["'\\]{0,4}([A-Za-z0-9/+=]{40})(?:[^A-Za-z0-9/+=]|$)"#;
    "github-token" Word Run Nothing ["ghp_" "gho_" "ghu_" "ghs_" "ghr_"] r"gh[pousr]_[A-Za-z0-9]{36,255}";
    "github-token" Word Run Nothing ["github_pat_"] r"github_pat_[A-Za-z0-9_]{36,255}";
    "gitlab-token" Word Run Nothing ["glpat-" "glptt-" "gldt-" "glrt-" "glcbt-" "glsoat-" "glft-" "glimt-" "glagent-" "gloas-"]
        r"gl[a-z]{2,5}-[A-Za-z0-9_-]{20,300}";
    "slack-token" Word Run Nothing ["xoxa-" "xoxb-" "xoxe-" "xoxe." "xoxo-" "xoxp-" "xoxr-" "xoxs-"] r"xox[a-z][-.][A-Za-z0-9.-]{10,300}";
    "slack-token" Word Run Nothing ["xapp-"] r"xapp-[0-9]-[A-Za-z0-9]{1,20}-[0-9]{1,20}-[A-Za-z0-9]{1,200}";
    "slack-webhook" Anywhere Run Nothing ["hooks.slack.com/"] r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{20,100})";
    "discord-webhook" Anywhere Run Nothing ["/api/webhooks/"] r"/api/webhooks/([0-9]{10,30}/[A-Za-z0-9_-]{40,100})";
    "stripe-key" Word Run Nothing ["sk_live_" "sk_test_" "rk_live_" "rk_test_" "sk_prod_" "rk_prod_"] r"[sr]k_[a-z]{4}_[A-Za-z0-9]{10,200}";
    "stripe-webhook-secret" Word Run Nothing ["whsec_"] r"whsec_[A-Za-z0-9+/=]{24,100}";
    "google-api-key" Word Word Nothing ["AIza"] r"AIza[A-Za-z0-9_-]{35}";
    "google-oauth-token" Word Run Nothing ["ya29."] r"ya29\.[A-Za-z0-9_-]{20,500}";
    "google-oauth-secret" Word Word Nothing ["GOCSPX-"] r"GOCSPX-[A-Za-z0-9_-]{28}";
    "npm-token" Word Word Nothing ["npm_"] r"npm_[A-Za-z0-9]{36}";
    "pypi-token" Word Run Nothing ["pypi-AgE"] r"pypi-AgE[A-Za-z0-9_-]{40,500}";
    "huggingface-token" Word Run Nothing ["hf_"] r"hf_[A-Za-z0-9]{30,60}";
    "huggingface-token" Word Run Nothing ["api_org_"] r"api_org_[A-Za-z0-9]{30,60}";
    "azure-storage-key" Anywhere Anywhere Nothing ["AccountKey=" "SharedAccessKey="] r"[A-Za-z]{10,16}=([A-Za-z0-9+/]{40,100}={0,2})";
    "azure-sas-signature" Word Anywhere Nothing ["sig="] r"sig=([A-Za-z0-9%/+]{40,100}(?:%3[dD]|=))";
    "signature" Anywhere Run Digit ["?sig=" "&sig=" "?signature=" "&signature=" "?Signature=" "&Signature="] r"[?&][Ss]ig(?:nature)?=([A-Za-z0-9%/+_=.-]{16,2000})";
    "key" Anywhere Run Digit ["?key=" "&key="] r"[?&]key=([A-Za-z0-9_-]{16,200})";
    "token" Anywhere Run Digit ["#t="] r"#t=([A-Za-z0-9_-]{16,200})";
    "azure-client-secret" Before(4) Run Nothing ["Q~"] r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}";
    "digitalocean-token" Word Word Nothing ["dop_v1_" "doo_v1_" "dor_v1_"] r"do[por]_v1_[a-f0-9]{64}";
    "sendgrid-key" Word Run Nothing ["SG."] r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}";
    "twilio-key" Word Word Nothing ["SK"] r"SK[0-9a-f]{32}";
    "telegram-token" Digits Word Nothing [":AA"] r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,34}";
    "mailgun-key" Word Word Nothing ["key-"] r"key-[0-9a-f]{32}";
    "shopify-token" Word Word Nothing ["shpat_" "shpca_" "shppa_" "shpss_"] r"shp[a-z]{2}_[a-fA-F0-9]{32}";
    "square-token" Word Run Nothing ["sq0atp-" "sq0csp-"] r"sq0[a-z]{3}-[A-Za-z0-9_-]{22,60}";
    "databricks-token" Word Word Nothing ["dapi"] r"dapi[a-f0-9]{32}";
    "linear-key" Word Run Nothing ["lin_api_"] r"lin_api_[A-Za-z0-9]{40}";
    "notion-token" Word Run Nothing ["ntn_"] r"ntn_[A-Za-z0-9]{40,60}";
    "vault-token" Word Run Nothing ["hvs." "hvb."] r"hv[sb]\.[A-Za-z0-9_-]{24,500}";
    "grafana-token" Word Run Nothing ["glsa_" "glc_"] r"gl(?:sa|c)_[A-Za-z0-9+/_]{32,400}";
    "groq-key" Word Run Nothing ["gsk_"] r"gsk_[A-Za-z0-9]{40,60}";
    "xai-key" Word Run Nothing ["xai-"] r"xai-[A-Za-z0-9]{70,90}";
    "perplexity-key" Word Run Nothing ["pplx-"] r"pplx-[A-Za-z0-9]{40,60}";
    "replicate-token" Word Run Nothing ["r8_"] r"r8_[A-Za-z0-9]{37}";
    "docker-token" Word Run Nothing ["dckr_pat_"] r"dckr_pat_[A-Za-z0-9_-]{20,60}";
    "rubygems-key" Word Word Nothing ["rubygems_"] r"rubygems_[a-f0-9]{48}";
    "age-key" Word Run Nothing ["AGE-SECRET-KEY-1"] r"AGE-SECRET-KEY-1[0-9A-Z]{58}";
    "postman-key" Word Run Nothing ["PMAK-"] r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}";
    "newrelic-key" Word Word Nothing ["NRAK-"] r"NRAK-[A-Z0-9]{27}";
    "atlassian-token" Word Run Nothing ["ATATT3"] r"ATATT3[A-Za-z0-9_=-]{100,300}";
    "sentry-token" Word Run Nothing ["sntrys_"] r"sntrys_[A-Za-z0-9+/=_-]{40,500}";
    "sentry-token" Word Run Nothing ["sntryu_"] r"sntryu_[a-f0-9]{64}";
    "figma-token" Word Run Nothing ["figd_" "figu_" "figo_" "figor_" "figh_"] r"fig[a-z]{1,2}_[A-Za-z0-9_-]{20,100}";
    "supabase-key" Word Run Nothing ["sbp_"] r"sbp_(?:oauth_)?[a-f0-9]{40}";
    "supabase-key" Word Run Nothing ["sb_secret_"] r"sb_secret_[A-Za-z0-9_-]{20,100}";
    "planetscale-token" Word Run Nothing ["pscale_"] r"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9=._-]{32,64}";
    "doppler-token" Word Run Nothing ["dp.pt." "dp.st." "dp.ct." "dp.sa." "dp.scim." "dp.audit."]
        r"dp\.[a-z]{2,5}\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}";
    "netlify-token" Word Run Nothing ["nfp_" "nfc_" "nfo_" "nfu_"] r"nf[pcou]_[A-Za-z0-9_]{36,60}";
    "tailscale-key" Word Run Nothing ["tskey-"] r"tskey-(?:[a-z]{3,10}-)?[A-Za-z0-9]{6,40}-[A-Za-z0-9]{16,60}";
    "fly-token" Word Anywhere Nothing ["fo1_"] r"fo1_[A-Za-z0-9_-]{43}";
    "fly-token" Word Anywhere Nothing ["fm1a_" "fm1r_" "fm2_"] r"fm[12][ar]?_[A-Za-z0-9+/=,_-]{100,4000}";
    "dropbox-token" Word Run Nothing ["sl."] r"sl\.(?:u\.)?[A-Za-z0-9_=-]{130,1500}";
    "bitbucket-token" Word Run Nothing ["ATBB"] r"ATBB[A-Za-z0-9_=-]{24,200}";
    "bitbucket-token" Word Run Nothing ["ATCTT3"] r"ATCTT3[A-Za-z0-9_=-]{100,300}";
    "square-token" Word Run Digit ["EAAA"] r"EAAA[A-Za-z0-9_-]{60}";
    "terraform-token" Before(14) Run Nothing [".atlasv1."] r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}";
    "nats-seed" Word Word Nothing ["SUA" "SAA" "SOA" "SNA" "SCA" "SXA"] r"S[UAONCX]A[A-P][A-Z2-7]{54}";
    "aws-bedrock-key" Word Run Nothing ["ABSK"] r"ABSK[A-Za-z0-9+/]{109,269}={0,2}";
    "aws-bedrock-key" Word Anywhere Nothing ["bedrock-api-key-"] r"bedrock-api-key-[A-Za-z0-9+/=_-]{24,4000}";
    "artifactory-key" Word Word Nothing ["AKCp"] r"AKCp[A-Za-z0-9]{69}";
    "artifactory-key" Word Word Nothing ["cmVmd"] r"cmVmd[A-Za-z0-9]{59}";
    "1password-token" Word Run Nothing ["ops_eyJ"] r"ops_eyJ[A-Za-z0-9+/=_-]{250,4000}";
    "1password-key" Word Word Nothing ["A3-"] r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}";
    "alibaba-key" Word Word Nothing ["LTAI"] r"LTAI[A-Za-z0-9]{20}";
    "adobe-secret" Word Word Nothing ["p8e-"] r"p8e-[A-Za-z0-9]{32}";
    "clickhouse-key" Word Word Nothing ["4b1d"] r"4b1d[A-Za-z0-9]{38}";
    "clojars-token" Word Word Nothing ["CLOJARS_"] r"CLOJARS_[A-Za-z0-9]{60}";
    "contentful-token" Word Run Nothing ["CFPAT-"] r"CFPAT-[A-Za-z0-9_-]{40,60}";
    "cloudflare-key" Word Word Nothing ["v1.0-"] r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}";
    "defined-token" Word Run Nothing ["dnkey-"] r"dnkey-[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}";
    "duffel-token" Word Run Nothing ["duffel_test_" "duffel_live_"] r"duffel_[a-z]{4}_[A-Za-z0-9_=-]{43}";
    "dynatrace-token" Word Run Nothing ["dt0c01."] r"dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}";
    "easypost-key" Word Word Nothing ["EZAK" "EZTK"] r"EZ[AT]K[A-Za-z0-9]{54}";
    "facebook-token" Word Run Digit ["EAAM" "EAAC"] r"EAA[MC][A-Za-z0-9]{100,400}";
    "flutterwave-key" Word Word Nothing ["FLWSECK"] r"FLWSECK(?:_TEST)?-[a-h0-9]{12,32}(?:-X)?";
    "frameio-token" Word Run Nothing ["fio-u-"] r"fio-u-[A-Za-z0-9_=-]{64}";
    "gitlab-token" Word Run Nothing ["glffct-" "GR1348941"] r"(?:glffct-|GR1348941)[A-Za-z0-9_-]{20,64}";
    "grafana-key" Word Anywhere Nothing ["eyJrIjoi"] r"eyJrIjoi[A-Za-z0-9]{70,400}={0,3}";
    "harness-key" Word Run Nothing ["pat." "sat."] r"[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}";
    "heroku-key" Word Run Nothing ["HRKU-"] r"HRKU-[A-Za-z0-9_-]{36,64}";
    "infracost-token" Word Word Digit ["ico-"] r"ico-[A-Za-z0-9]{32}";
    "intra42-secret" Word Word Nothing ["s-s4t2"] r"s-s4t2(?:ud|af)-[a-f0-9]{64}";
    "teams-webhook" Anywhere Run Nothing ["webhook.office.com/"] r"webhook\.office\.com/webhookb2/([A-Za-z0-9/@-]{60,300})";
    "octopus-key" Word Word Digit ["API-"] r"API-[A-Z0-9]{26}";
    "openshift-token" Word Run Nothing ["sha256~"] r"sha256~[A-Za-z0-9_-]{43}";
    "prefect-token" Word Word Nothing ["pnu_"] r"pnu_[A-Za-z0-9]{36}";
    "pulumi-token" Word Word Nothing ["pul-"] r"pul-[a-f0-9]{40}";
    "readme-key" Word Word Nothing ["rdme_"] r"rdme_[a-z0-9]{70}";
    "scalingo-token" Word Run Nothing ["tk-us-"] r"tk-us-[A-Za-z0-9_-]{48}";
    "brevo-key" Word Run Nothing ["xkeysib-"] r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}";
    "settlemint-token" Word Word Nothing ["sm_aat_" "sm_pat_" "sm_sat_"] r"sm_[aps]at_[A-Za-z0-9]{16}";
    "shippo-token" Word Word Nothing ["shippo_"] r"shippo_(?:live|test)_[a-fA-F0-9]{40}";
    "sourcegraph-token" Word Word Nothing ["sgp_"] r"sgp_(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}";
    "typeform-token" Word Run Nothing ["tfp_"] r"tfp_[A-Za-z0-9_.=-]{40,70}";
    "newrelic-key" Word Word Nothing ["NRII-" "NRJS-"] r"NR(?:II-[A-Za-z0-9-]{32}|JS-[a-f0-9]{19})";
    "plaid-token" Word Word Nothing ["access-sandbox-" "access-development-" "access-production-"]
        r"access-[a-z]{7,11}-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
    "mapbox-token" Word Run Nothing ["sk.eyJ"] r"sk\.eyJ[A-Za-z0-9_-]{40,200}\.[A-Za-z0-9_-]{20,40}";
    "treelined-token" Anywhere Word Nothing ["#t="] r"#t=([0-9a-f]{64})";
    "jwt" Token Anywhere Nothing ["eyJ"] r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}";
    "bearer-token" Word Run Digit ["Bearer " "bearer "] r"[Bb]earer {1,4}([A-Za-z0-9._~+/-]{20,500}=*)";
    "authorization" Anywhere Anywhere Parameters ["uthorization" "UTHORIZATION"]
        r#"(?i)uthorization["'\\]{0,4}[ \t]{0,8}(?:=>|[:=])[ \t]{0,8}["'\\]{0,4}(?:digest|hawk|mac|oauth|signature|aws4-[a-z0-9-]{8,24})[ \t\r\n]{1,8}([A-Za-z0-9_*-]{1,40}=)"#;
    "authorization" Word Anywhere Parameters ["AWS4-HMAC-SHA256" "AWS4-ECDSA-P256-SHA256"] r"AWS4-[A-Z0-9-]{8,24}[ \t\r\n]{1,8}(Credential=)";
    "aws-signature" Anywhere Anywhere Nothing ["X-Amz-Signature"] r"X-Amz-Signature(?:=|%3[dD])([0-9a-f]{64})";
    "authorization" Anywhere Anywhere SomeParameters ["uthorization" "UTHORIZATION"]
        r#"(?i)uthorization["'\\]{0,4}[ \t]{0,8}(?:=>|[:=,])[ \t]{0,8}["'\\]{0,4}[a-z][a-z0-9_-]{1,30}[ \t]{1,4}([A-Za-z0-9_*-]{1,40}=)"#;
    "authorization" Anywhere Run Nothing ["uthorization" "UTHORIZATION"]
        r#"(?i)uthorization["'\\]{0,4}[ \t]{0,8}(?:=>|[:=])[ \t]{0,8}["'\\]{0,4}(?:bearer|basic|token|apikey|api-key|negotiate)[ \t]{1,8}([A-Za-z0-9._~+/:=-]{6,2000})"#;
    "authorization" Anywhere Run Digit ["uthorization" "UTHORIZATION" "-api-key" "-Api-Key" "-API-Key" "-API-KEY"]
        r#"[A-Za-z-]{8,13}["'\\]{0,4}[ \t]{0,8}(?:=>|[:=])[ \t]{0,8}["'\\]{0,4}([A-Za-z0-9._~+/=-]{16,2000})"#;
    "authorization" Anywhere Anywhere Digit ["uthorization" "UTHORIZATION"]
        r#"(?i)uthorization["'\\]{0,4}[ \t]{0,8}(?:=>|[:=,])[ \t]{0,8}["'\\]{0,4}[a-z][a-z0-9_-]{1,30}[ \t]{1,4}([A-Za-z0-9._~+/:=-]{8,2000})"#;
    "cookie" Anywhere Anywhere Cookies ["ookie" "OOKIE"]
        r#"(?i)ookie2?["'\\]{0,4}[ \t]{0,4}[:=][ \t]{0,4}["'\\]{0,4}([A-Z0-9_.%$-]{1,100}=)"#;
    "cookie" Anywhere Anywhere Cookies ["--cookie " "--cookie="] r#"--cookie[ =]["'\\]{0,4}([A-Za-z0-9_.%-]{1,100}=)"#;
    "cookie" Word Anywhere Cookies ["curl "]
        r#"curl(?:[^\n|;]|\\\n){0,400}?[ \t]-[a-zA-Z]{0,4}b[ \t]?["'\\]{0,4}([A-Za-z0-9_.%-]{1,100}=)"#;
    "password" Word Anywhere Nothing ["curl "]
        r#"curl(?:[^\n|;]|\\\n){0,400}? (?:-[a-zA-Z]{0,4}u|--user|--proxy-user)[ =]?\\{0,3}["'][^\s:"'$]{1,100}:([^"'$<{\n\\][^"'<{\n\\]{2,200})\\{0,3}["']"#;
    "password" Word Anywhere Nothing ["curl "]
        r#"curl(?:[^\n|;]|\\\n){0,400}? (?:-[a-zA-Z]{0,4}u|--user|--proxy-user)[ =]?["']?[^\s:"'$]{1,100}:([^\s"'$<{][^\s"'<{]{2,200})"#;
    "password" Word Anywhere Nothing ["mysql" "mariadb"]
        r#"(?:mysql|mariadb)[a-z-]{0,12}(?:[ \t][^\n|;]{0,300}?)?[ \t]-p["']?([^\s"'$<{-][^\s"'<{]{3,200})"#;
    "password" Word Anywhere Nothing ["sshpass "] r#"sshpass [^\n|;]{0,40}?-p[ \t]{0,4}["']?([^\s"'$<{][^\s"'<{]{1,200})"#;
    "password" Word Anywhere Nothing ["mongo"]
        r#"mongo[a-z]{0,8} [^\n|;]{0,200}?-p[ =]["']?([^\s"'$<{-][^\s"'<{]{3,200})"#;
    "password" Word Anywhere Nothing ["requirepass "] r#"requirepass ["']?([^\s"'$<{][^\s"'<{]{3,200})"#;
    "password" Word Anywhere Nothing ["redis-cli "] r#"redis-cli [^\n|;]{0,200}?(?:-a|--pass)[ =]["']?([^\s"'$<{][^\s"'<{]{3,200})"#;
    "password" Word Anywhere Nothing ["docker login" "podman login"]
        r#"[a-z]{6} login [^\n|;]{0,200}?-p[ =]["']?([^\s"'$<{][^\s"'<{]{3,200})"#;
    "password" Anywhere Anywhere Nothing ["DENTIFIED BY " "dentified by "] r#"(?i)dentified by (?:password )?'([^'\n$<{]{3,200})'"#;
    "password" Word Anywhere Nothing ["echo " "printf "]
        r#"(?:echo|printf) (?:-n )?["']?([^\s"'|$<{][^\s"'|]{2,200})["']? ?\| ?sudo -S"#;
    "password" Anywhere Anywhere Nothing ["-passin pass:" "-passout pass:" "-pass pass:"] r#"-pass(?:in|out)? pass:["']?([^\s"'$<{][^\s"'<{]{2,200})"#;
    "url-credentials" Anywhere Anywhere Url ["://" r":\/" r":\\/" r":\\\/" r":\\\\/"] ":";
    "url-credentials" Anywhere Anywhere Nothing ["%3A%2F%2F" "%3a%2f%2f"]
        r"%3[aA]%2[fF]%2[fF][A-Za-z0-9._~+-]{0,256}%3[aA]((?:[A-Za-z0-9._~!$*+-]|%[013-9A-Fa-f][0-9A-Fa-f]|%2[145789A-Ea-e]){1,256}?)%40[A-Za-z0-9]";
    "private-key" Anywhere Anywhere KeyBlock ["-----BEGIN "] r"-----BEGIN [ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----";
}
