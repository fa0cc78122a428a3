// SPDX-License-Identifier: Apache-2.0 OR MIT

import interop.TestClient;
import interop.TestServer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * gRPC's implementation for Java in the public interoperability cases:
 *
 * <pre>
 * Interop server --port=N [--use_tls=true --cert_file=FILE --key_file=FILE]
 * Interop client --server_host=HOST --server_port=N --test_case=NAME [--use_tls=true --ca_file=FILE
 *         --server_host_override=NAME]
 * </pre>
 *
 * A server prints its port and ends with its standard input.
 */
public final class Interop {
    public static void main(String[] words) throws Exception {
        Map<String, String> flags = new HashMap<>();
        for (String word : Arrays.asList(words).subList(1, words.length)) {
            String[] parts = word.substring(2).split("=", 2);
            flags.put(parts[0], parts[1]);
        }
        if (words[0].equals("server")) {
            TestServer.serve(flags);
        } else {
            TestClient.runCase(flags);
        }
        System.exit(0);
    }

    private Interop() {
    }
}
