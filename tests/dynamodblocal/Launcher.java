import com.amazonaws.services.dynamodbv2.local.server.LocalDynamoDBRequestHandler;
import com.amazonaws.services.dynamodbv2.local.server.LocalDynamoDBServerHandler;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * Serves DynamoDB Local from memory, on the loopback alone: its own main would listen on every interface. Writes the URL to
 * standard output once it answers, and ends when standard input does, so that it never outlives whoever started it.
 */
public final class Launcher {
    private Launcher() {}

    public static void main(String[] args) throws Exception {
        boolean inMemory = true;
        boolean oneDatabase = true; // whatever the caller's region and credentials
        boolean slowToCreateTables = false;
        var tables = new LocalDynamoDBRequestHandler(0, inMemory, null, oneDatabase, slowToCreateTables);

        var server = new Server();
        var loopback = new ServerConnector(server);
        loopback.setHost("127.0.0.1");
        loopback.setPort(0); // a free one
        server.addConnector(loopback);
        server.setHandler(new LocalDynamoDBServerHandler(tables, null));
        server.start();
        System.out.println("http://127.0.0.1:" + loopback.getLocalPort());

        while (System.in.read() >= 0) {
            // Nothing is ever said: only the end counts.
        }
        server.stop();
        tables.shutdown();
        System.exit(0);
    }
}
