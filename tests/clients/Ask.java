/** Asks at the port with JDBC: what tables there are, and a question with a parameter, two rows at a time. */
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

public class Ask {
    public static void main(String[] arguments) throws Exception {
        String address = "jdbc:postgresql://127.0.0.1:" + System.getenv("SECANT_PORT") + "/shop"
            + "?user=ana&options=-csecant.epsilon=50&sslmode=require";
        try (Connection connection = DriverManager.getConnection(address, "ana", System.getenv("PGPASSWORD"))) {
            try (ResultSet tables = connection.getMetaData().getTables(null, "public", "%", new String[] {"TABLE"})) {
                while (tables.next()) System.out.println("table " + tables.getString("TABLE_NAME"));
            }
            try (ResultSet columns = connection.getMetaData().getColumns(null, "public", "towns", "%")) {
                while (columns.next()) System.out.println("column " + columns.getString("COLUMN_NAME"));
            }
            try (ResultSet keys = connection.getMetaData().getPrimaryKeys(null, "public", "orders")) {
                while (keys.next()) System.out.println("key " + keys.getString("COLUMN_NAME"));
            }
            connection.setAutoCommit(false);
            String text = "SELECT status, count(*) AS n FROM orders WHERE quantity >= ? GROUP BY status ORDER BY status";
            for (int i = 0; i < 7; i++) {  // the driver prepares on the server from the fifth time on
                try (PreparedStatement statement = connection.prepareStatement(text)) {
                    statement.setFetchSize(2);
                    statement.setInt(1, 2);
                    try (ResultSet rows = statement.executeQuery()) {
                        while (rows.next()) {
                            if (i == 6) System.out.println("row " + rows.getString(1) + " " + rows.getLong(2));
                        }
                    }
                }
            }
            connection.commit();
            try (PreparedStatement statement = connection.prepareStatement("SELECT id FROM customers")) {
                statement.executeQuery();
            } catch (SQLException refused) {
                System.out.println("refused " + refused.getSQLState());
            }
            connection.rollback();
        }
    }
}
